//! A line from the terminal that does not appear on it (termios(3), without ECHO).
//!
//! Keys come one by one and Ctrl-C is one of them, so that it cannot leave the terminal mute.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Puts the terminal back when dropped, also after a panic.
struct Hidden<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn on(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// Longest line that is kept.
const BYTES_MAX: usize = 1024;
/// Ctrl-C; the next are Ctrl-D, Ctrl-H, Ctrl-U and Delete.
const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const KILL: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// Asks on the terminal of this process and reads a line that is not shown.
/// # Errors
/// When there is no terminal, or it was closed, or by Ctrl-C.
pub fn read_password(prompt: &str) -> io::Result<String> {
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    (&terminal).write_all(prompt.as_bytes())?;
    let hidden = Hidden::on(&terminal)?;
    let line = line_of(BufReader::new(&terminal).bytes());
    drop(hidden);
    (&terminal).write_all(b"\n")?;
    line
}

/// What the keys up to the end of the line leave.
fn line_of(keys: impl Iterator<Item = io::Result<u8>>) -> io::Result<String> {
    let mut line = Vec::new();
    for key in keys {
        match key? {
            b'\r' | b'\n' => return String::from_utf8(line).map_err(io::Error::other),
            INTERRUPT => return Err(io::ErrorKind::Interrupted.into()),
            END if line.is_empty() => break,
            KILL => line.clear(),
            BACKSPACE | DELETE => drop(line.pop()),
            _ if line.len() >= BYTES_MAX => return Err(io::ErrorKind::InvalidInput.into()),
            key => line.push(key),
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &str, line: Option<&str>) {
        let read = line_of(keys.bytes().map(Ok)).ok();
        assert_eq!(read.as_deref(), line, "{keys:?}");
    }

    #[test]
    fn keys_make_a_line() {
        check("rossi\n", Some("rossi"));
        check("two words\r", Some("two words"));
        check("rossy\x7fi\n", Some("rossi"));
        check("other\x15rossi\n", Some("rossi"));
        check("\x7f\n", Some(""));
        for gone in ["rossi", "\x04", "ros\x03si\n", ""] {
            check(gone, None);
        }
    }
}
