//! Cuts the control connection into lines. Holds at most one line and what came with it.

use super::LineError;

/// Longest line: a line of parameters has about 400 bytes.
pub const LINE_BYTES_MAX: usize = 4096;

/// Bytes as they come, lines as they end.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
}

impl Lines {
    /// Takes bytes as they arrive.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line without its end, or `None` when more bytes are needed. Bytes that are
    /// no UTF-8 are replaced.
    /// # Errors
    /// [`LineError::TooLong`] as soon as a line has no end within [`LINE_BYTES_MAX`] bytes.
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
