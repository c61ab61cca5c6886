//! Mistakes with layers: each is an error that names the op, what was given, what to do, and the user's line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Attention, Between, Conv, DType, Elementwise, ErrorKind, GradientTape, Padding, Pool, Tensor,
    function, tensor,
};

use crate::common::own_context;
use crate::common::refused::floats;
use crate::refused;

#[test]
fn windows_that_go_nowhere_or_do_not_fit_are_refused() {
    let _context = own_context();
    let (x, w) = (floats(&[1, 5, 5, 2]), floats(&[3, 3, 2, 4]));
    refused!(
        x.conv2d(&w, &Conv::same().stride(0)),
        ErrorKind::BadArgument { .. },
        "conv: ",
        "at least 1"
    );
    refused!(
        x.conv2d(&w, &Conv::valid().dilation([1, 0])),
        ErrorKind::BadArgument { .. },
        "conv: ",
        "[1, 0]",
        "at least 1"
    );
    refused!(
        x.conv2d(&w, &Conv::valid().dilation(3)),
        ErrorKind::BadArgument { .. },
        "reaches over [7, 7]",
        "[5, 5]",
        "more padding"
    );
    refused!(
        x.conv2d(&w, &Conv::valid().stride([1, 2, 3])),
        ErrorKind::BadArgument { .. },
        "conv2d: ",
        "[1, 2, 3]",
        "2 spatial axes"
    );
    refused!(
        x.conv2d(&w, &Conv::valid().padding([[1, 1]; 3])),
        ErrorKind::BadArgument { .. },
        "conv2d: ",
        "padding"
    );
    refused!(
        x.conv2d(&w, &Conv::valid().padding(usize::MAX)),
        ErrorKind::BadArgument { .. },
        "conv: ",
        "2^31"
    );
    refused!(
        x.conv2d(&w, &Conv::valid().lengths([9, 9])),
        ErrorKind::BadArgument { .. },
        "conv2d: ",
        "leave them out"
    );
    refused!(
        x.max_pool(&Pool::of(6)),
        ErrorKind::BadArgument { .. },
        "max_pool: ",
        "smaller window"
    );
    refused!(x.max_pool(&Pool::of(0)), ErrorKind::BadArgument { .. }, "max_pool: ", "at least 1");
    refused!(x.max_pool(&Pool::of(2).padding(2)), ErrorKind::BadArgument { .. }, "pad by less");
    refused!(
        x.resize([0, 3], Between::Linear),
        ErrorKind::BadArgument { .. },
        "resize: ",
        "pixels"
    );
}

#[test]
fn channels_and_groups_that_do_not_fit_are_refused() {
    let _context = own_context();
    let (x, w) = (floats(&[1, 5, 5, 6]), floats(&[3, 3, 2, 4]));
    let same = Conv::same();
    refused!(
        x.conv2d(&w, &same),
        ErrorKind::ShapeMismatch { .. },
        "conv: ",
        "[1, 5, 5, 6]",
        "[3, 3, 2, 4]",
        "6 channels"
    );
    refused!(
        x.conv2d(&w, &same.clone().groups(3)),
        ErrorKind::BadArgument { .. },
        "3 groups do not divide the 4 channels"
    );
    refused!(x.conv2d(&w, &same.clone().groups(0)), ErrorKind::BadArgument { .. }, "0 groups");
    refused!(x.conv1d(&w, &same), ErrorKind::RankMismatch { .. }, "conv1d: ", "[1, 5, 5, 6]");
    refused!(
        x.conv2d(&(&w).cast(DType::F64).unwrap(), &same),
        ErrorKind::DTypeMismatch { .. },
        "conv: ",
        "f32",
        "f64"
    );
    let ints = tensor([[[1i32, 2], [3, 4]]]).unwrap();
    refused!(
        ints.conv1d(&ints, &same),
        ErrorKind::DTypeUnsupported { .. },
        "conv: ",
        "i32",
        "cast"
    );
    refused!(
        x.conv2d_transpose(&w, &same),
        ErrorKind::ShapeMismatch { .. },
        "conv_transpose: ",
        "6 channels"
    );
    let values = floats(&[1, 3, 3, 4]);
    refused!(
        values.conv2d_transpose(&w, &same.clone().stride(2).lengths([9, 5])),
        ErrorKind::ShapeMismatch { .. },
        "conv_transpose: ",
        "another number of windows"
    );
    refused!(
        x.group_norm(4, &floats(&[6]), &floats(&[6]), 1e-5),
        ErrorKind::BadArgument { .. },
        "group_norm: ",
        "4 groups of 6"
    );
    refused!(
        x.layer_norm(&floats(&[5]), &floats(&[6]), 1e-5),
        ErrorKind::ShapeMismatch { .. },
        "layer_norm: ",
        "[5]",
        "[6]"
    );
    refused!(
        x.rms_norm(&floats(&[6]), -1.0),
        ErrorKind::BadArgument { .. },
        "layer_norm: ",
        "epsilon"
    );
}

#[test]
fn attention_names_what_does_not_fit() {
    let _context = own_context();
    let (q, k) = (floats(&[2, 4, 5, 8]), floats(&[2, 3, 6, 8]));
    let plain = Attention::new();
    refused!(
        q.scaled_dot_product_attention(&k, &k, &plain),
        ErrorKind::ShapeMismatch { .. },
        "scaled_dot_product_attention: ",
        "[2, 4, 5, 8]",
        "[2, 3, 6, 8]",
        "divide"
    );
    let (k, v) = (floats(&[2, 2, 6, 8]), floats(&[2, 2, 7, 8]));
    refused!(
        q.scaled_dot_product_attention(&k, &v, &plain),
        ErrorKind::ShapeMismatch { .. },
        "a value for every key"
    );
    refused!(
        q.scaled_dot_product_attention(&k, &k, &plain.clone().mask(&floats(&[4, 6]))),
        ErrorKind::BadArgument { .. },
        "[4, 6]",
        "[2, 4, 5, 6]"
    );
    let flat = floats(&[4, 5, 8]);
    refused!(
        flat.scaled_dot_product_attention(&flat, &flat, &plain),
        ErrorKind::RankMismatch { .. },
        "[batch, heads, length, width]"
    );
    refused!(
        floats(&[2, 3, 5]).rotary_embedding(1e4),
        ErrorKind::BadArgument { .. },
        "rotary_embedding: ",
        "even"
    );
}

#[test]
fn labels_and_rates_out_of_range_are_refused() {
    let _context = own_context();
    let x = floats(&[2, 3]);
    refused!(
        x.sparse_cross_entropy(&tensor([0, 3]).unwrap()),
        ErrorKind::IndexOutOfRange { .. },
        "cross_entropy: ",
        "3"
    );
    refused!(
        x.sparse_cross_entropy(&tensor([0, 1, 2]).unwrap()),
        ErrorKind::ShapeMismatch { .. },
        "[3]",
        "[2]"
    );
    refused!(
        x.sparse_cross_entropy_smoothed(&tensor([0, 1]).unwrap(), 1.5),
        ErrorKind::BadArgument { .. },
        "1.5",
        "between 0 and 1"
    );
    refused!(x.dropout(-0.1), ErrorKind::BadArgument { .. }, "dropout: ", "-0.1");
    refused!(x.softmax(2), ErrorKind::AxisOutOfRange { .. }, "softmax");
}

#[test]
fn padding_that_follows_an_open_length_is_refused_where_it_does() {
    let _context = own_context();
    // By steps of one the padding does not depend on the length; by larger ones it does.
    let f = function(|x: Tensor| {
        x.conv1d(&floats(&[3, 2, 2]), &Conv::same())?.max_pool(&Pool::of(2).padding(Padding::Same))
    });
    let made = f.call(floats(&[1, 5, 2])).unwrap();
    assert_eq!(made.shape().to_string(), "[1, 3, 2]");
}

#[test]
fn a_failed_layer_leaves_a_tape_that_goes_on() {
    let _context = own_context();
    let x = floats(&[1, 4, 4, 2]);
    let mut tape = GradientTape::new();
    tape.watch(&x);
    assert!(x.conv2d(&floats(&[5, 5, 2, 2]), &Conv::valid()).is_err());
    let y = x.conv2d(&floats(&[3, 3, 2, 2]), &Conv::valid()).unwrap().sum_all().unwrap();
    let g = tape.gradient(&y, &[&x]).unwrap()[0].tensor().unwrap();
    assert_eq!(g.shape().to_string(), "[1, 4, 4, 2]");
}
