//! Estimators. Each names its definition and is checked against a value from outside.
