//! Ops that move axes and elements and make tensors from nothing: views and recipes, mostly.

pub mod bitcast;
pub mod broadcast_to;
pub mod concat;
pub mod diag;
pub mod diag_part;
pub mod expand_dims;
pub mod eye;
pub mod fill;
pub mod fold_padding;
pub mod lengths;
pub mod linspace;
pub mod one_hot;
pub mod pad;
pub mod place;
pub mod range;
pub mod repeat;
pub mod reshape;
pub mod reverse;
pub mod roll;
pub mod slice;
pub mod split;
pub mod squeeze;
pub mod stack;
pub mod tile;
pub mod transpose;
pub mod unstack;
