//! The planner: a pure function from a graph to a plan. No device, no clock, no randomness, no
//! `unsafe`.

pub mod offsets;
