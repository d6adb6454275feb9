//! Wire formats and protocol machines of linerate, without I/O.
