//! The table: every op of Tonnage, one row in one file, with its kernel and its gradient.
//!
//! To add an op, write its file and add its line to [`TABLE`]. Everything else (eager mode, tracing,
//! the planner, the tape, the docs, the conformance tests) reads the row.

pub mod control;
mod derive;
pub mod emit;
pub mod host;
pub mod index;
mod infer;
pub mod linalg;
pub mod math;
pub mod nn;
mod number;
pub mod page;
mod parallel;
pub mod random;
pub mod reduce;
pub mod rules;
pub mod samples;
pub mod shape;
pub mod signal;
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
    Abs = math::abs::ABS,
    Acos = math::acos::ACOS,
    Acosh = math::acosh::ACOSH,
    Asin = math::asin::ASIN,
    Asinh = math::asinh::ASINH,
    Atan = math::atan::ATAN,
    Atan2 = math::atan2::ATAN2,
    Atanh = math::atanh::ATANH,
    BitwiseAnd = math::bitwise_and::BITWISE_AND,
    BitwiseNot = math::bitwise_not::BITWISE_NOT,
    BitwiseOr = math::bitwise_or::BITWISE_OR,
    BitwiseXor = math::bitwise_xor::BITWISE_XOR,
    Ceil = math::ceil::CEIL,
    Clip = math::clip::CLIP,
    Cos = math::cos::COS,
    Cosh = math::cosh::COSH,
    Digamma = math::digamma::DIGAMMA,
    DivideNoNan = math::divide_no_nan::DIVIDE_NO_NAN,
    Elu = math::elu::ELU,
    Erf = math::erf::ERF,
    Erfc = math::erfc::ERFC,
    Expm1 = math::expm1::EXPM1,
    Floor = math::floor::FLOOR,
    FloorDiv = math::floor_div::FLOOR_DIV,
    Fma = math::fma::FMA,
    Gelu = math::gelu::GELU,
    GeluTanh = math::gelu_tanh::GELU_TANH,
    Greater = math::greater::GREATER,
    GreaterEqual = math::greater_equal::GREATER_EQUAL,
    HardSigmoid = math::hard_sigmoid::HARD_SIGMOID,
    HardSwish = math::hard_swish::HARD_SWISH,
    Hypot = math::hypot::HYPOT,
    IsFinite = math::is_finite::IS_FINITE,
    IsInf = math::is_inf::IS_INF,
    IsNan = math::is_nan::IS_NAN,
    LeakyRelu = math::leaky_relu::LEAKY_RELU,
    LessEqual = math::less_equal::LESS_EQUAL,
    Lgamma = math::lgamma::LGAMMA,
    Log1p = math::log1p::LOG1P,
    LogicalAnd = math::logical_and::LOGICAL_AND,
    LogicalNot = math::logical_not::LOGICAL_NOT,
    LogicalOr = math::logical_or::LOGICAL_OR,
    LogicalXor = math::logical_xor::LOGICAL_XOR,
    Minimum = math::minimum::MINIMUM,
    Mod = math::mod_::MOD,
    NotEqual = math::not_equal::NOT_EQUAL,
    Polygamma = math::polygamma::POLYGAMMA,
    Pow = math::pow::POW,
    Reciprocal = math::reciprocal::RECIPROCAL,
    Relu6 = math::relu6::RELU6,
    Round = math::round::ROUND,
    Rsqrt = math::rsqrt::RSQRT,
    Selu = math::selu::SELU,
    ShiftLeft = math::shift_left::SHIFT_LEFT,
    ShiftRight = math::shift_right::SHIFT_RIGHT,
    Sigmoid = math::sigmoid::SIGMOID,
    Sign = math::sign::SIGN,
    Silu = math::silu::SILU,
    Sin = math::sin::SIN,
    Sinh = math::sinh::SINH,
    Softplus = math::softplus::SOFTPLUS,
    Softsign = math::softsign::SOFTSIGN,
    Sqrt = math::sqrt::SQRT,
    SquaredDifference = math::squared_difference::SQUARED_DIFFERENCE,
    Tan = math::tan::TAN,
    Xlogy = math::xlogy::XLOGY,
    Fused = tile::fused::FUSED,
    FusedUpdate = tile::fused_update::FUSED_UPDATE,
    Sum = reduce::sum::SUM,
    Max = reduce::max::MAX,
    Mean = reduce::mean::MEAN,
    Prod = reduce::prod::PROD,
    Min = reduce::min::MIN,
    Any = reduce::any::ANY,
    All = reduce::all::ALL,
    Var = reduce::var::VAR,
    Std = reduce::std_::STD,
    Logsumexp = reduce::logsumexp::LOGSUMEXP,
    Norm = reduce::norm::NORM,
    CountNonzero = reduce::count_nonzero::COUNT_NONZERO,
    Argmax = reduce::argmax::ARGMAX,
    Argmin = reduce::argmin::ARGMIN,
    Cumsum = reduce::cumsum::CUMSUM,
    Cumprod = reduce::cumprod::CUMPROD,
    LinearRecurrence = reduce::linear_recurrence::LINEAR_RECURRENCE,
    Transpose = shape::transpose::TRANSPOSE,
    Slice = shape::slice::SLICE,
    Place = shape::place::PLACE,
    Reshape = shape::reshape::RESHAPE,
    BroadcastTo = shape::broadcast_to::BROADCAST_TO,
    Fill = shape::fill::FILL,
    Range = shape::range::RANGE,
    Concat = shape::concat::CONCAT,
    Diag = shape::diag::DIAG,
    DiagPart = shape::diag_part::DIAG_PART,
    ExpandDims = shape::expand_dims::EXPAND_DIMS,
    Eye = shape::eye::EYE,
    FoldPadding = shape::fold_padding::FOLD_PADDING,
    Lengths = shape::lengths::LENGTHS,
    Linspace = shape::linspace::LINSPACE,
    OneHot = shape::one_hot::ONE_HOT,
    Pad = shape::pad::PAD,
    Repeat = shape::repeat::REPEAT,
    Reverse = shape::reverse::REVERSE,
    Roll = shape::roll::ROLL,
    Split = shape::split::SPLIT,
    Squeeze = shape::squeeze::SQUEEZE,
    Stack = shape::stack::STACK,
    Tile = shape::tile::TILE,
    Unstack = shape::unstack::UNSTACK,
    RandomNormal = random::normal::RANDOM_NORMAL,
    RandomUniform = random::uniform::RANDOM_UNIFORM,
    RandomTruncatedNormal = random::truncated_normal::RANDOM_TRUNCATED_NORMAL,
    RandomBelow = random::below::RANDOM_BELOW,
    RandomBits = random::bits::RANDOM_BITS,
    RandomGamma = random::gamma::RANDOM_GAMMA,
    RandomPoisson = random::poisson::RANDOM_POISSON,
    RandomCategorical = random::categorical::RANDOM_CATEGORICAL,
    Matmul = linalg::matmul::MATMUL,
    Cholesky = linalg::cholesky::CHOLESKY,
    TriangularSolve = linalg::triangular_solve::TRIANGULAR_SOLVE,
    Tril = linalg::tril::TRIL,
    Triu = linalg::triu::TRIU,
    Solve = linalg::solve::SOLVE,
    Inv = linalg::inv::INV,
    Det = linalg::det::DET,
    Slogdet = linalg::slogdet::SLOGDET,
    Qr = linalg::qr::QR,
    Eigh = linalg::eigh::EIGH,
    Svd = linalg::svd::SVD,
    HalfTril = linalg::half_tril::HALF_TRIL,
    Symmetrize = linalg::symmetrize::SYMMETRIZE,
    Fft = signal::fft::FFT,
    Ifft = signal::ifft::IFFT,
    Rfft = signal::rfft::RFFT,
    Irfft = signal::irfft::IRFFT,
    FirstOf = index::first_of::FIRST_OF,
    Gather = index::gather::GATHER,
    GatherLast = index::gather_last::GATHER_LAST,
    TakeAlongAxis = index::take_along_axis::TAKE_ALONG_AXIS,
    PutAlongAxis = index::put_along_axis::PUT_ALONG_AXIS,
    RowsToDense = index::rows_to_dense::ROWS_TO_DENSE,
    ScatterAdd = index::scatter_add::SCATTER_ADD,
    ScatterUpdate = index::scatter_update::SCATTER_UPDATE,
    TopK = index::top_k::TOP_K,
    BooleanMask = index::boolean_mask::BOOLEAN_MASK,
    MaskScatter = index::mask_scatter::MASK_SCATTER,
    Argsort = index::argsort::ARGSORT,
    Bincount = index::bincount::BINCOUNT,
    DynamicSlice = index::dynamic_slice::DYNAMIC_SLICE,
    DynamicUpdate = index::dynamic_update::DYNAMIC_UPDATE,
    GatherNd = index::gather_nd::GATHER_ND,
    Histogram = index::histogram::HISTOGRAM,
    Nonzero = index::nonzero::NONZERO,
    ScatterNdAdd = index::scatter_nd_add::SCATTER_ND_ADD,
    ScatterNdMax = index::scatter_nd_max::SCATTER_ND_MAX,
    ScatterNdMin = index::scatter_nd_min::SCATTER_ND_MIN,
    ScatterNdUpdate = index::scatter_nd_update::SCATTER_ND_UPDATE,
    Searchsorted = index::searchsorted::SEARCHSORTED,
    Sort = index::sort::SORT,
    Unique = index::unique::UNIQUE,
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
    Resize = nn::resize::forward::RESIZE,
    ResizeGrad = nn::resize::grad::RESIZE_GRAD,
    RotaryEmbedding = nn::rotary::ROTARY_EMBEDDING,
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
    AssignSub = state::assign_sub::ASSIGN_SUB,
    AssignRows = state::assign_rows::ASSIGN_ROWS,
    AssignAddRows = state::assign_add_rows::ASSIGN_ADD_ROWS,
    Print = host::print::PRINT,
    Assertion = host::assertion::ASSERTION,
    HostCallback = host::callback::HOST_CALLBACK,
    PureCallback = host::pure::PURE_CALLBACK,
    Call = control::call::CALL,
    Custom = control::custom::CUSTOM,
    Cond = control::cond::COND,
    Switch = control::switch::SWITCH,
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
    rows_to_dense: &index::rows_to_dense::ROWS_TO_DENSE,
    gather: &index::gather::GATHER,
    reshape: &shape::reshape::RESHAPE,
};
