//! The table: every op of Tonnage, one row in one file, with its kernel and its gradient.
//!
//! To add an op, write its file and add its line to [`TABLE`]. Everything else (eager mode, tracing,
//! the planner, the tape, the docs, the conformance tests) reads the row.

pub mod control;
mod derive;
pub mod emit;
pub mod index;
mod infer;
pub mod linalg;
pub mod math;
pub mod nn;
mod number;
mod parallel;
pub mod random;
pub mod reduce;
pub mod rules;
pub mod samples;
pub mod shape;
pub mod simd;
pub mod state;
mod strided;
pub mod tile;

use tonnage_core::OpDef;
use tonnage_core::grad::GradOps;

macro_rules! table {
    ($($id:ident = $row:path,)*) => {
        /// A dense number for every op, in the table's order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each is its row's name")]
        pub enum OpId { $($id,)* }

        /// Every op.
        pub static TABLE: &[&OpDef] = &[$(&$row,)*];
    };
}

table! {
    Add = math::add::ADD,
    Sub = math::sub::SUB,
    Mul = math::mul::MUL,
    Div = math::div::DIV,
    Maximum = math::maximum::MAXIMUM,
    Less = math::less::LESS,
    Equal = math::equal::EQUAL,
    Neg = math::neg::NEG,
    Square = math::square::SQUARE,
    Exp = math::exp::EXP,
    Log = math::log::LOG,
    Tanh = math::tanh::TANH,
    Relu = math::relu::RELU,
    ReluGrad = math::relu_grad::RELU_GRAD,
    Cast = math::cast::CAST,
    Where = math::where_::WHERE,
    Identity = math::identity::IDENTITY,
    StopGradient = math::stop_gradient::STOP_GRADIENT,
    Fused = tile::fused::FUSED,
    FusedUpdate = tile::fused_update::FUSED_UPDATE,
    Sum = reduce::sum::SUM,
    Max = reduce::max::MAX,
    Transpose = shape::transpose::TRANSPOSE,
    Slice = shape::slice::SLICE,
    Place = shape::place::PLACE,
    Reshape = shape::reshape::RESHAPE,
    BroadcastTo = shape::broadcast_to::BROADCAST_TO,
    Fill = shape::fill::FILL,
    Range = shape::range::RANGE,
    RandomNormal = random::normal::RANDOM_NORMAL,
    RandomUniform = random::uniform::RANDOM_UNIFORM,
    Matmul = linalg::matmul::MATMUL,
    Cholesky = linalg::cholesky::CHOLESKY,
    TriangularSolve = linalg::triangular_solve::TRIANGULAR_SOLVE,
    Tril = linalg::tril::TRIL,
    HalfTril = linalg::half_tril::HALF_TRIL,
    Symmetrize = linalg::symmetrize::SYMMETRIZE,
    Gather = index::gather::GATHER,
    GatherLast = index::gather_last::GATHER_LAST,
    TakeAlongAxis = index::take_along_axis::TAKE_ALONG_AXIS,
    PutAlongAxis = index::put_along_axis::PUT_ALONG_AXIS,
    ScatterAdd = index::scatter_add::SCATTER_ADD,
    ScatterUpdate = index::scatter_update::SCATTER_UPDATE,
    TopK = index::top_k::TOP_K,
    BooleanMask = index::boolean_mask::BOOLEAN_MASK,
    MaskScatter = index::mask_scatter::MASK_SCATTER,
    Attention = nn::attention::forward::ATTENTION,
    AttentionGrad = nn::attention::grad::ATTENTION_GRAD,
    Conv = nn::conv::forward::CONV,
    ConvTranspose = nn::conv::transpose::CONV_TRANSPOSE,
    ConvFilterGrad = nn::conv::filter_grad::CONV_FILTER_GRAD,
    AvgPool = nn::pool::avg::AVG_POOL,
    AvgPoolGrad = nn::pool::avg_grad::AVG_POOL_GRAD,
    MaxPool = nn::pool::max::MAX_POOL,
    MaxPoolGrad = nn::pool::max_grad::MAX_POOL_GRAD,
    MaxPoolPick = nn::pool::max_pick::MAX_POOL_PICK,
    LayerNorm = nn::norm::layer::LAYER_NORM,
    LayerNormGrad = nn::norm::layer_grad::LAYER_NORM_GRAD,
    GroupNorm = nn::norm::group::GROUP_NORM,
    GroupNormGrad = nn::norm::group_grad::GROUP_NORM_GRAD,
    Softmax = nn::softmax::plain::SOFTMAX,
    SoftmaxGrad = nn::softmax::plain_grad::SOFTMAX_GRAD,
    LogSoftmax = nn::softmax::log::LOG_SOFTMAX,
    LogSoftmaxGrad = nn::softmax::log_grad::LOG_SOFTMAX_GRAD,
    CrossEntropy = nn::softmax::cross_entropy::CROSS_ENTROPY,
    CrossEntropyGrad = nn::softmax::cross_entropy_grad::CROSS_ENTROPY_GRAD,
    CrossEntropyDense = nn::softmax::cross_entropy_dense::CROSS_ENTROPY_DENSE,
    CrossEntropyDenseGrad = nn::softmax::cross_entropy_dense_grad::CROSS_ENTROPY_DENSE_GRAD,
    Assign = state::assign::ASSIGN,
    AssignAdd = state::assign_add::ASSIGN_ADD,
    Cond = control::cond::COND,
    WhileLoop = control::while_loop::WHILE_LOOP,
    WhileGrad = control::while_grad::WHILE_GRAD,
}

/// The row of that name.
///
/// ```
/// assert_eq!(tonnage_ops::find("tanh").map(|op| op.name), Some("tanh"));
/// assert!(tonnage_ops::find("tanhh").is_none());
/// ```
pub fn find(name: &str) -> Option<&'static OpDef> {
    TABLE.iter().copied().find(|op| op.name == name)
}

/// The ops that the gradient walker itself uses.
pub static GRAD_OPS: GradOps = GradOps {
    add: &math::add::ADD,
    fill: &shape::fill::FILL,
    scatter_add: &index::scatter_add::SCATTER_ADD,
};
