//! TCP throughput: the client's and the server's side.
