//! Reading a password from the terminal without echo (termios(3)).
//!
//! Keys are read one by one, including Ctrl-C, so that an interrupt cannot leave the echo off.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Terminal with its echo off; restored when dropped, also after a panic.
struct Hidden<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn hide_typing(terminal: &'a File) -> io::Result<Self> {
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

/// Bytes of the longest line that is kept.
const BYTES_MAX: usize = 1024;
/// Key Ctrl-C; the next keys are Ctrl-D, Ctrl-H, Ctrl-U and Delete.
const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const KILL: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// Prints a prompt to the terminal of this process and reads a line without echo.
/// # Errors
/// When there is no terminal, or it was closed, or by Ctrl-C.
pub fn read_password(prompt: &str) -> io::Result<String> {
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    (&terminal).write_all(prompt.as_bytes())?;
    let hidden = Hidden::hide_typing(&terminal)?;
    let line = line_of(BufReader::new(&terminal).bytes());
    drop(hidden);
    (&terminal).write_all(b"\n")?;
    line
}

/// The line that a sequence of keys enters, with deletions applied.
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

    fn check_line(keys: &str, line: Option<&str>) {
        let read = line_of(keys.bytes().map(Ok)).ok();
        assert_eq!(read.as_deref(), line, "{keys:?}");
    }

    #[test]
    fn keys_make_a_line() {
        check_line("rossi\n", Some("rossi"));
        check_line("two words\r", Some("two words"));
        check_line("rossy\x7fi\n", Some("rossi"));
        check_line("other\x15rossi\n", Some("rossi"));
        check_line("\x7f\n", Some(""));
        for gone in ["rossi", "\x04", "ros\x03si\n", ""] {
            check_line(gone, None);
        }
    }
}
