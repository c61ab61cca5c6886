//! Training and what it is made of: layers, models, optimizers, metrics, data, checkpoints.

#[path = "../common/mod.rs"]
mod common;

mod checkpoints;
mod data;
mod feeding;
mod layers;
mod metrics;
mod models;
mod network;
mod nn;
mod nn_refused;
mod optim;
mod pipelines;
mod sharding;
mod training;
