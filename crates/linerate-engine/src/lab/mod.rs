//! Laboratories: hosts, switches and routers in network namespaces.
