//! Width of the terminal at standard output (TIOCGWINSZ, ioctl_tty(2)).

/// Columns of the terminal; `None` where standard output is no terminal, or its size is unknown.
pub fn columns() -> Option<usize> {
    let stdout = rustix::stdio::stdout();
    if !rustix::termios::isatty(stdout) {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stdout).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
