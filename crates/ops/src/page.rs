//! The page of ops: what the table says, for people. `tonnage ops` prints it.
//!
//! Which dtypes an op takes is not written down anywhere else than in its type rule, so the rule is asked: each input of each
//! sample is given every dtype, along with the inputs that share its own.

use std::fmt;

use tonnage_core::row::{Call, Fails, Grad, Mem, OpDef, Sample};
use tonnage_core::{Class, DType, TensorType};

use crate::TABLE;

/// One op of the page.
pub struct OpEntry {
    /// Its row.
    pub op: &'static OpDef,
    /// The dtypes that each input may have; of an op that takes any number, those of one of them.
    pub inputs: Vec<Vec<DType>>,
    /// The dtypes of the first result.
    pub makes: Vec<DType>,
}

/// Every op, in the order of their names.
///
/// ```
/// let page = tonnage_ops::page::page();
/// let tanh = page.iter().find(|entry| entry.op.name == "tanh");
/// assert!(tanh.is_some_and(|tanh| tanh.to_string().starts_with("tanh(float) -> float")));
/// ```
pub fn page() -> Vec<OpEntry> {
    let mut all: Vec<OpEntry> = TABLE.iter().map(|op| entry(op)).collect();
    all.sort_by_key(|entry| entry.op.name);
    all
}

/// What the table says about one op.
pub fn entry(op: &'static OpDef) -> OpEntry {
    let mut made = OpEntry { op, inputs: Vec::new(), makes: Vec::new() };
    for sample in (op.samples)() {
        made.inputs.resize(made.inputs.len().max(sample.inputs.len()), Vec::new());
        let types: Vec<TensorType> = sample.inputs.iter().map(|input| input.ty.clone()).collect();
        made.ask(&sample, &types, None);
        for i in 0..types.len() {
            for dtype in DType::ALL {
                let mut changed = types.clone();
                let like = |ty: &&mut TensorType| ty.dtype == types[i].dtype;
                changed.iter_mut().filter(like).for_each(|ty| ty.dtype = dtype);
                made.ask(&sample, &changed, Some(i));
            }
        }
    }
    let lists = made.inputs.iter_mut().chain([&mut made.makes]);
    lists.for_each(|dtypes| dtypes.sort_by_key(|dtype| order(*dtype)));
    made
}

fn order(dtype: DType) -> usize {
    DType::ALL.iter().position(|other| *other == dtype).unwrap_or(0)
}

fn note(dtypes: &mut Vec<DType>, dtype: DType) {
    if !dtypes.contains(&dtype) {
        dtypes.push(dtype);
    }
}

impl OpEntry {
    /// Notes the dtypes of a call that has types, those of one input or of all.
    fn ask(&mut self, sample: &Sample, types: &[TensorType], input: Option<usize>) {
        let (attrs, regions) = (&sample.attrs, &sample.regions[..]);
        let call = Call { op: self.op.name, inputs: types, attrs, regions };
        let Ok(made) = (self.op.infer)(&call) else { return };
        if let Some(first) = made.first() {
            note(&mut self.makes, first.dtype);
        }
        let asked = types.iter().enumerate().filter(|(i, _)| input.is_none_or(|input| input == *i));
        asked.for_each(|(i, ty)| note(&mut self.inputs[i], ty.dtype));
    }

    /// Whether it has a gradient, and if not, why.
    pub fn gradient(&self) -> Result<(), &'static str> {
        match self.op.grad {
            Grad::Rule(_) => Ok(()),
            Grad::Stop(why) => Err(why),
        }
    }

    /// What it does to memory, in a few words.
    pub fn memory(&self) -> String {
        match self.op.mem {
            Mem::Alloc => "fresh".into(),
            Mem::Reuse(_) => "fresh, or in place".into(),
            Mem::View(_) => "none: a view".into(),
            Mem::Recipe => "none until it is read".into(),
            Mem::Update(_) => "the variable's".into(),
            Mem::File => "none: in a file".into(),
            Mem::Regions => "that of its bodies".into(),
        }
    }

    /// How it can fail once its types are right.
    pub fn fails(&self) -> &'static str {
        match self.op.fails {
            Fails::Never => "never",
            Fails::OnData => "on values",
            Fails::OnIo => "on files",
        }
    }
}

/// A name for a set of dtypes.
pub fn named(dtypes: &[DType]) -> String {
    let holds = |of: &dyn Fn(DType) -> bool| {
        DType::ALL.into_iter().all(|dtype| of(dtype) == dtypes.contains(&dtype))
    };
    match () {
        () if holds(&|_| true) => "any".into(),
        () if holds(&|dtype| dtype != DType::Bool) => "number".into(),
        () if holds(&DType::is_float) => "float".into(),
        () if holds(&DType::is_integer) => "integer".into(),
        () if holds(&|dtype| dtype.class() != Class::Float) => "integer or bool".into(),
        () => dtypes.iter().map(DType::to_string).collect::<Vec<_>>().join(" or "),
    }
}

impl fmt::Display for OpEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs: Vec<String> = self.inputs.iter().map(|dtypes| named(dtypes)).collect();
        write!(f, "{}({}) -> {}", self.op.name, inputs.join(", "), named(&self.makes))
    }
}
