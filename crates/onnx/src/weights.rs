//! Where the weights of a model are while it runs: in the file, read by the ops that use them each time, or in memory, brought there once.
//!
//! In memory they are variables whose first value is read when it is first needed: a plan takes them as if they were there, so that planning reads
//! none. Some lie there in another form than the file's, such as filters in the order that kernels read them in; the file's form is not in memory then.
//!
//! Decision: `docs/decisions/onnx-weights-are-variables.md`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tonnage::{Result, Tensor, TensorType, Variable, bind};
use tonnage_core::{Kind, Mark, Source};

use crate::ahead::{Ahead, AllAhead, Traced};
use crate::contents::ModelData;
use crate::message::GraphMessage;
use crate::value::Value;

/// Where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the file.
    File,
    /// In memory.
    Memory,
    /// In memory, and tapes watch those that are trained.
    Trained,
}

/// The weights of a model.
pub struct Weights {
    place: Place,
    variables: Mutex<HashMap<Form, Variable>>,
    /// What is made of them alone, by nodes.
    pub ahead: Arc<AllAhead>,
}

/// Which weights a variable is made of, by their identity, and how.
type Form = (Vec<u64>, &'static str);

/// The form of the file.
const AS_IS: &str = "";

impl Weights {
    /// None is there yet.
    pub fn new(place: Place) -> Weights {
        Weights { place, variables: Mutex::default(), ahead: Arc::default() }
    }

    /// Where they are.
    pub fn place(&self) -> Place {
        self.place
    }

    /// A tensor of a graph: where it is a weight that is in memory, the variable's value.
    pub fn read(
        &self,
        data: &ModelData,
        tensor: Tensor,
        traced: Option<&Traced>,
    ) -> Result<Tensor> {
        if let Some(ahead) = self.ahead.find(&tensor) {
            return self.stood_for(&tensor, &ahead, traced);
        }
        match self.is_variable(data, &tensor)? {
            true => self.as_is(data, tensor)?.read(),
            false => Ok(tensor),
        }
    }

    /// A value that leaves the graph, or what is planned together: what a stand-in stands for.
    pub fn settled(&self, value: Value) -> Result<Value> {
        match value {
            Value::Tensor(tensor) => Ok(Value::Tensor(match self.ahead.find(&tensor) {
                Some(ahead) => self.stood_for(&tensor, &ahead, None)?,
                None => tensor,
            })),
            other => Ok(other),
        }
    }

    fn stood_for(
        &self,
        stand_in: &Tensor,
        ahead: &Arc<Ahead>,
        traced: Option<&Traced>,
    ) -> Result<Tensor> {
        if ahead.is_kept() {
            return self.kept(stand_in, ahead).read();
        }
        let (traced, id) = (traced.cloned().unwrap_or_default(), bind::identity(stand_in));
        if let Some(made) = traced.borrow().get(&id) {
            return Ok(made.clone());
        }
        let made = ahead.traced(self, traced.clone())?;
        traced.borrow_mut().insert(id, made.clone());
        Ok(made)
    }

    /// Whether a tensor of a graph is a weight that is a variable.
    pub fn is_variable(&self, data: &ModelData, tensor: &Tensor) -> Result<bool> {
        if self.place == Place::File || data.name_of(tensor).is_none() {
            return Ok(false);
        }
        // What is small was read with the nodes.
        Ok(tensor.is_recipe() || self.place == Place::Trained && data.is_trained(tensor)?)
    }

    /// What is made of weights alone, and is of a type: once, where weights are in memory; none where they are not, or not all of these are
    /// weights.
    pub fn made(
        &self,
        data: &ModelData,
        of: &[Tensor],
        how: &'static str,
        ty: TensorType,
        make: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Result<Option<Tensor>> {
        let named = |tensor| match self.ahead.find(tensor) {
            Some(ahead) => Some(ahead.name().to_string()),
            None => data.name_of(tensor),
        };
        let names = of.iter().map(named).collect::<Option<Vec<_>>>();
        let (Place::Memory, Some(names)) = (self.place, names) else { return Ok(None) };
        let form = (of.iter().map(bind::identity).collect(), how);
        let (name, of) = (format!("{how} of {}", names.join(", ")), of.to_vec());
        // Whole tensors are read in the order of the file, then laid out.
        let ahead = self.ahead.clone();
        let first =
            move || Variable::computed(&name, ty, false, move || make(&in_memory(&ahead, &of)?));
        self.variable(form, first).read().map(Some)
    }

    fn as_is(&self, data: &ModelData, tensor: Tensor) -> Result<Variable> {
        let trained = self.place == Place::Trained && data.is_trained(&tensor)?;
        let name = data.name_of(&tensor).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| "constant".into());
        let form = (vec![bind::identity(&tensor)], AS_IS);
        let (ty, first) = (tensor.ty(), move || Ok(tensor.clone()));
        Ok(self.variable(form, || Variable::computed(&name, ty, trained, first)))
    }

    /// The variable that holds what a stand-in stands for.
    fn kept(&self, stand_in: &Tensor, ahead: &Arc<Ahead>) -> Variable {
        let form = (vec![bind::identity(stand_in)], AS_IS);
        let (all, own) = (self.ahead.clone(), ahead.clone());
        let first = move || own.computed(&all);
        self.variable(form, || Variable::computed(ahead.name(), stand_in.ty(), false, first))
    }

    fn variable(&self, form: Form, first: impl FnOnce() -> Variable) -> Variable {
        let mut variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        variables.entry(form).or_insert_with(first).clone()
    }

    /// Those that are trained, in the order of the file.
    pub fn trained(&self, data: &ModelData) -> Result<Vec<Variable>> {
        let mut all = Vec::new();
        for stored in &data.message.graph.initializers {
            let tensor = data.stored(stored)?;
            if data.is_trained(&tensor)? {
                all.push(self.as_is(data, tensor)?);
            }
        }
        Ok(all)
    }

    /// Gives all of their memory back.
    pub fn clear(&self) {
        self.variables.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The same tensors in memory.
fn in_memory(ahead: &AllAhead, tensors: &[Tensor]) -> Result<Vec<Tensor>> {
    let mark = Mark { source: Source::here(), kind: Kind::Variable };
    let read = |tensor: &Tensor| {
        let tensor = match ahead.find(tensor) {
            Some(made) => made.computed(ahead)?,
            None => tensor.clone(),
        };
        match tensor.is_recipe() {
            true => Ok(bind::tensor(bind::array(&tensor, "onnx")?.copied(mark, "onnx")?)),
            false => Ok(tensor),
        }
    };
    tensors.iter().map(read).collect()
}

/// Inputs of ops that are numbers of the op, or statistics, and no weights: the op, and the first and last of them.
const NO_WEIGHTS: &[(&str, usize, usize)] = &[
    ("BatchNormalization", 3, 4),
    ("Clip", 1, 2),
    ("Dropout", 1, 2),
    ("Pad", 1, 3),
    ("Pow", 1, 1),
    ("Resize", 1, 3),
    ("Upsample", 1, 1),
];

/// Names of the initializers that are trained: floats of at least one axis that an op takes as such.
pub fn trained(graph: &GraphMessage) -> Vec<String> {
    let mut uses: HashMap<&str, bool> = HashMap::new();
    for node in &graph.nodes {
        for (at, name) in node.inputs.iter().enumerate() {
            let is_weight = !NO_WEIGHTS
                .iter()
                .any(|(op, first, last)| *op == node.op && (*first..=*last).contains(&at));
            *uses.entry(name).or_default() |= is_weight;
        }
    }
    let is_trained = |name: &str| uses.get(name).copied().unwrap_or(false);
    let floats = graph.initializers.iter().filter(|stored| {
        let dtype = crate::message::dtype_of(stored.dtype);
        dtype.is_some_and(|dtype| dtype.is_float())
            && !stored.dims.is_empty()
            && is_trained(&stored.name)
    });
    floats.map(|stored| stored.name.clone()).collect()
}
