//! What every op is, in plain loops over f64: slow, obvious, and written from the ops' words alone.

mod binary;
mod control;
mod factors;
mod functions;
mod fused;
mod host;
mod index;
mod index_nd;
mod join;
mod linalg;
mod math;
mod nn;
mod nn_attention;
mod nn_conv;
mod nn_norm;
mod nn_window;
mod random;
mod reduce;
mod shape;
mod signal;
mod state;
mod world;

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::Graph;

use crate::plain::{Answer, Plain};

/// A call of a reference.
pub struct Asked<'a> {
    /// Values of the inputs.
    pub inputs: &'a [Plain],
    /// What the op is told besides.
    pub attrs: &'a Attrs,
    /// Bodies and branches.
    pub regions: &'a [Arc<Graph>],
}

/// What an op should give.
pub type Reference = fn(&Asked) -> Vec<Answer>;

const ALL: &[(&str, Reference)] = &[
    ("add", math::add),
    ("sub", math::sub),
    ("mul", math::mul),
    ("div", math::div),
    ("maximum", math::maximum),
    ("less", math::less),
    ("equal", math::equal),
    ("neg", math::neg),
    ("square", math::square),
    ("exp", math::exp),
    ("log", math::log),
    ("tanh", math::tanh),
    ("relu", math::relu),
    ("relu_grad", math::relu_grad),
    ("cast", math::cast),
    ("where", math::choose),
    ("identity", math::same),
    ("stop_gradient", math::same),
    ("abs", functions::abs),
    ("floor", functions::floor),
    ("ceil", functions::ceil),
    ("round", functions::round),
    ("sqrt", functions::sqrt),
    ("rsqrt", functions::rsqrt),
    ("reciprocal", functions::reciprocal),
    ("expm1", functions::expm1),
    ("log1p", functions::log1p),
    ("sin", functions::sin),
    ("cos", functions::cos),
    ("tan", functions::tan),
    ("asin", functions::asin),
    ("acos", functions::acos),
    ("atan", functions::atan),
    ("sinh", functions::sinh),
    ("cosh", functions::cosh),
    ("asinh", functions::asinh),
    ("acosh", functions::acosh),
    ("atanh", functions::atanh),
    ("sigmoid", functions::sigmoid),
    ("softplus", functions::softplus),
    ("softsign", functions::softsign),
    ("silu", functions::silu),
    ("gelu", functions::gelu),
    ("gelu_tanh", functions::gelu_tanh),
    ("erf", functions::erf),
    ("erfc", functions::erfc),
    ("lgamma", functions::lgamma),
    ("digamma", functions::digamma),
    ("polygamma", functions::polygamma),
    ("relu6", functions::relu6),
    ("hard_sigmoid", functions::hard_sigmoid),
    ("hard_swish", functions::hard_swish),
    ("selu", functions::selu),
    ("sign", functions::sign),
    ("is_nan", functions::is_nan),
    ("is_inf", functions::is_inf),
    ("is_finite", functions::is_finite),
    ("logical_not", functions::logical_not),
    ("bitwise_not", functions::bitwise_not),
    ("leaky_relu", functions::leaky_relu),
    ("elu", functions::elu),
    ("minimum", binary::minimum),
    ("pow", binary::pow),
    ("floor_div", binary::floor_div),
    ("atan2", binary::atan2),
    ("hypot", binary::hypot),
    ("squared_difference", binary::squared_difference),
    ("divide_no_nan", binary::divide_no_nan),
    ("xlogy", binary::xlogy),
    ("not_equal", binary::not_equal),
    ("less_equal", binary::less_equal),
    ("greater", binary::greater),
    ("greater_equal", binary::greater_equal),
    ("logical_and", binary::logical_and),
    ("logical_or", binary::logical_or),
    ("logical_xor", binary::logical_xor),
    ("bitwise_and", binary::bitwise_and),
    ("bitwise_or", binary::bitwise_or),
    ("bitwise_xor", binary::bitwise_xor),
    ("shift_left", binary::shift_left),
    ("shift_right", binary::shift_right),
    ("fma", binary::fma),
    ("clip", binary::clip),
    ("mod", binary::modulo),
    ("fused", fused::fused),
    ("fused_update", fused::fused),
    ("sum", reduce::sum),
    ("max", reduce::max),
    ("mean", reduce::mean),
    ("prod", reduce::prod),
    ("min", reduce::min),
    ("any", reduce::any),
    ("all", reduce::all),
    ("var", reduce::var),
    ("std", reduce::std),
    ("logsumexp", reduce::logsumexp),
    ("norm", reduce::norm),
    ("count_nonzero", reduce::count_nonzero),
    ("argmax", reduce::argmax),
    ("argmin", reduce::argmin),
    ("cumsum", reduce::cumsum),
    ("cumprod", reduce::cumprod),
    ("linear_recurrence", reduce::linear_recurrence),
    ("transpose", shape::transpose),
    ("slice", shape::slice),
    ("place", shape::place),
    ("reshape", shape::reshape),
    ("broadcast_to", shape::broadcast_to),
    ("fill", shape::fill),
    ("range", shape::range),
    ("concat", join::concat),
    ("stack", join::stack),
    ("unstack", join::unstack),
    ("split", join::split),
    ("expand_dims", join::expand_dims),
    ("squeeze", join::squeeze),
    ("reverse", join::reverse),
    ("bitcast", join::bitcast),
    ("roll", join::roll),
    ("pad", join::pad),
    ("fold_padding", join::fold_padding),
    ("one_hot", join::one_hot),
    ("tile", join::tile),
    ("repeat", join::repeat),
    ("eye", join::eye),
    ("linspace", join::linspace),
    ("diag", join::diag),
    ("diag_part", join::diag_part),
    ("lengths", join::lengths),
    ("random_normal", random::normal),
    ("random_uniform", random::uniform),
    ("random_truncated_normal", random::truncated),
    ("random_below", random::below),
    ("random_bits", random::bits),
    ("random_seeded", random::seeded),
    ("random_gamma", random::gamma),
    ("random_poisson", random::poisson),
    ("random_categorical", random::categorical),
    ("matmul", linalg::matmul),
    ("matmul_integer", linalg::matmul_integer),
    ("cholesky", linalg::cholesky),
    ("triangular_solve", linalg::triangular_solve),
    ("tril", linalg::tril),
    ("triu", linalg::triu),
    ("solve", linalg::solve),
    ("inv", linalg::inv),
    ("det", linalg::det),
    ("slogdet", linalg::slogdet),
    ("qr", factors::qr),
    ("eigh", factors::eigh),
    ("svd", factors::svd),
    ("fft", signal::fft),
    ("ifft", signal::ifft),
    ("rfft", signal::rfft),
    ("irfft", signal::irfft),
    ("half_tril", linalg::half_tril),
    ("symmetrize", linalg::symmetrize),
    ("softmax", nn::softmax),
    ("softmax_grad", nn::softmax_grad),
    ("log_softmax", nn::log_softmax),
    ("log_softmax_grad", nn::log_softmax_grad),
    ("cross_entropy", nn::cross_entropy),
    ("cross_entropy_grad", nn::cross_entropy_grad),
    ("cross_entropy_dense", nn::cross_entropy),
    ("cross_entropy_dense_grad", nn::cross_entropy_grad),
    ("layer_norm", nn_norm::layer_norm),
    ("layer_norm_grad", nn_norm::layer_norm_grad),
    ("group_norm", nn_norm::group_norm),
    ("group_norm_grad", nn_norm::group_norm_grad),
    ("scaled_dot_product_attention", nn_attention::attention),
    ("attention_grad", nn_attention::attention_grad),
    ("conv", nn_conv::forward),
    ("conv_transpose", nn_conv::transpose),
    ("conv_filter_grad", nn_conv::filter_grad),
    ("avg_pool", nn_window::avg_pool),
    ("avg_pool_grad", nn_window::avg_pool_grad),
    ("max_pool", nn_window::max_pool),
    ("max_pool_grad", nn_window::max_pool_grad),
    ("max_pool_pick", nn_window::max_pool_pick),
    ("resize", nn_window::resize),
    ("resize_grad", nn_window::resize_grad),
    ("rotary_embedding", nn::rotary_embedding),
    ("first_of", index::first_of),
    ("gather", index::gather),
    ("gather_last", index::gather_last),
    ("take_along_axis", index::take_along_axis),
    ("put_along_axis", index::put_along_axis),
    ("rows_to_dense", index::rows_to_dense),
    ("scatter_add", index::scatter_add),
    ("scatter_update", index::scatter_update),
    ("argsort", index_nd::argsort),
    ("bincount", index_nd::bincount),
    ("dynamic_slice", index_nd::dynamic_slice),
    ("dynamic_update", index_nd::dynamic_update),
    ("gather_nd", index_nd::gather_nd),
    ("histogram", index_nd::histogram),
    ("nonzero", index_nd::nonzero),
    ("scatter_nd_add", index_nd::scatter_nd_add),
    ("scatter_nd_max", index_nd::scatter_nd_max),
    ("scatter_nd_min", index_nd::scatter_nd_min),
    ("scatter_nd_update", index_nd::scatter_nd_update),
    ("searchsorted", index_nd::searchsorted),
    ("sort", index_nd::sort),
    ("unique", index_nd::unique),
    ("mask_scatter", index::mask_scatter),
    ("top_k", index::top_k),
    ("boolean_mask", index::boolean_mask),
    ("print", host::nothing),
    ("assertion", host::nothing),
    ("host_callback", host::twice),
    ("pure_callback", host::twice),
    ("all_reduce", world::alone),
    ("reduce_scatter", world::alone),
    ("all_gather", world::alone),
    ("broadcast", world::alone),
    ("reduce_to", world::alone),
    ("gather_blocks", world::whole),
    ("reduce_blocks", world::block),
    ("own_block", world::block),
    ("assign", state::assign),
    ("assign_add", state::assign_add),
    ("assign_sub", state::assign_sub),
    ("assign_rows", index::scatter_update),
    ("assign_add_rows", index::scatter_add),
    ("call", control::call),
    ("custom", control::call),
    ("cond", control::branch),
    ("switch", control::branch),
    ("while_loop", control::while_loop),
    ("while_grad", control::while_grad),
];

/// The reference of that name.
pub fn find(name: &str) -> Option<Reference> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, reference)| *reference)
}

/// A whole graph, node by node.
pub fn run_graph(graph: &Graph, inputs: &[Plain]) -> Vec<Plain> {
    let mut held: Vec<Option<Plain>> = vec![None; graph.value_count()];
    for (id, value) in graph.inputs.iter().zip(inputs) {
        held[id.index()] = Some(value.clone());
    }
    for node in &graph.nodes {
        let inputs: Vec<Plain> =
            node.inputs.iter().map(|id| held[id.index()].clone().expect("made before")).collect();
        let reference = find(node.op.name).expect("a reference");
        let asked = Asked { inputs: &inputs, attrs: &node.attrs, regions: &node.regions };
        for (id, made) in node.outputs.iter().zip(reference(&asked)) {
            held[id.index()] = Some(made.plain());
        }
    }
    graph.outputs.iter().map(|id| held[id.index()].clone().expect("made")).collect()
}

/// Every index of a shape, last axis fastest.
pub fn indices(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for size in sizes {
        let longer = |index: &Vec<usize>| {
            (0..*size).map(|i| [&index[..], &[i]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

impl Plain {
    /// The element at an index.
    pub fn at(&self, index: &[usize]) -> f64 {
        let flat = index.iter().zip(&self.sizes).fold(0, |at, (i, n)| at * n + i);
        self.values[flat]
    }

    /// The element that an index of a shape it broadcasts to reads.
    pub fn broadcast(&self, index: &[usize]) -> f64 {
        let own = &index[index.len() - self.sizes.len()..];
        let own: Vec<usize> =
            own.iter().zip(&self.sizes).map(|(i, n)| if *n == 1 { 0 } else { *i }).collect();
        self.at(&own)
    }
}

/// The shape that all broadcast to.
pub fn common<'a>(shapes: impl Iterator<Item = &'a Vec<usize>> + Clone) -> Vec<usize> {
    let rank = shapes.clone().map(Vec::len).max().unwrap_or(0);
    let length = |axis: usize| {
        let lengths = shapes.clone().filter_map(|s| s.get((axis + s.len()).checked_sub(rank)?));
        lengths.copied().find(|n| *n != 1).unwrap_or(1)
    };
    (0..rank).map(length).collect()
}
