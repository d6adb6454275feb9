//! Splits the control connection into lines. Buffers at most one line and the bytes after it.

use super::LineError;

/// Bytes of the longest line; a line of parameters has about 400.
pub const LINE_BYTES_MAX: usize = 4096;

/// Buffer of received bytes, read line by line.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
}

impl Lines {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete line without its newline; `None` when more bytes are needed. Invalid UTF-8
    /// is replaced.
    /// # Errors
    /// [`LineError::TooLong`] when there is no newline within [`LINE_BYTES_MAX`] bytes.
    pub fn next_line(&mut self) -> Result<Option<String>, LineError> {
        let end = self.buffer.iter().take(LINE_BYTES_MAX + 1).position(|&byte| byte == b'\n');
        let Some(end) = end else {
            let long = self.buffer.len() > LINE_BYTES_MAX;
            return if long { Err(LineError::TooLong) } else { Ok(None) };
        };
        let line = String::from_utf8_lossy(&self.buffer[..end]).trim_end().to_owned();
        self.buffer.drain(..=end);
        Ok(Some(line))
    }
}
