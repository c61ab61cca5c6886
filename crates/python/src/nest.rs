//! Nested Python values as trees: tensors in lists, tuples, dictionaries, named tuples and objects that say how,
//! beside plain values.
//!
//! Plain values are held by the tree, so that an object that is compared by identity keeps its identity.
//!
//! Decision: `docs/decisions/python-holds-no-mechanics.md`.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use tonnage::strings::{Strings, Value};
use tonnage::{Result, Tensor, Tree, bind};

use crate::convert::{self, Want};
use crate::errors::raise;
use crate::strings::{self, FlatValues, PyStrings, PyValue, ValueKind, next};
use crate::tensor::PyTensor;
use crate::variable::PyVariable;

/// What numbers and variables among the values are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LeafPolicy {
    /// Numbers are part of the signature; variables are themselves.
    Arguments,
    /// Everything that can be a tensor is one.
    Tensors,
    /// As elements of a dataset are: tuples and dictionaries are nested, and what is neither is a tensor or a dataset.
    Elements,
}

/// A nested Python value, its tensors apart.
pub struct Nest {
    pub tensors: Vec<Tensor>,
    shape: Arc<NestStructure>,
}

struct NestStructure {
    text: String,
    node: NestNode,
    /// What its tensors are, in order.
    kinds: Vec<ValueKind>,
}

enum NestNode {
    Tensor,
    /// Strings, which are three tensors.
    Strings,
    Plain(Py<PyAny>),
    List(Vec<NestNode>),
    Tuple(Vec<NestNode>),
    Dict {
        /// In the order of the keys, where they have one: two dictionaries of the same values are the same.
        parts: Vec<(Py<PyAny>, NestNode)>,
        /// The places of the parts in the order in which the dictionary is made again.
        order: Vec<usize>,
    },
    /// What is made of the parts by a call: a named tuple by its class, others by what they said.
    Made {
        by: Py<PyAny>,
        parts: Vec<NestNode>,
    },
    /// What the call of that number made once more: what was one object stays one.
    Again(usize),
    /// Others in the places of the plain values of a template.
    Joined {
        template: Arc<NestStructure>,
        parts: Vec<Arc<NestStructure>>,
    },
}

impl NestNode {
    fn is_tensors(&self) -> bool {
        match self {
            NestNode::Tensor | NestNode::Strings | NestNode::Again(_) => true,
            NestNode::Plain(_) => false,
            NestNode::List(parts) | NestNode::Tuple(parts) | NestNode::Made { parts, .. } => {
                parts.iter().all(NestNode::is_tensors)
            }
            NestNode::Dict { parts, .. } => parts.iter().all(|(_, part)| part.is_tensors()),
            NestNode::Joined { parts, .. } => parts.iter().all(|part| part.node.is_tensors()),
        }
    }
}

struct NestWalk {
    how: LeafPolicy,
    tensors: Vec<Tensor>,
    kinds: Vec<ValueKind>,
    text: String,
    /// What calls will make again, in the order of the calls.
    made: Vec<Py<PyAny>>,
}

impl NestWalk {
    fn new(how: LeafPolicy) -> NestWalk {
        let (tensors, kinds) = (Vec::new(), Vec::new());
        NestWalk { how, tensors, kinds, text: String::new(), made: Vec::new() }
    }

    fn end(self, node: NestNode) -> Nest {
        let shape = NestStructure { text: self.text, node, kinds: self.kinds };
        Nest { tensors: self.tensors, shape: Arc::new(shape) }
    }
}

impl Nest {
    /// A Python value as a tree.
    pub fn of(given: &Bound<'_, PyAny>, how: LeafPolicy) -> PyResult<Nest> {
        let mut walk = NestWalk::new(how);
        let node = walk.node(given, 0)?;
        Ok(walk.end(node))
    }

    /// A call's arguments as a tree.
    pub fn of_call(
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Nest> {
        let mut walk = NestWalk::new(LeafPolicy::Arguments);
        let mut parts = vec![walk.node(args.as_any(), 0)?];
        if let Some(kwargs) = kwargs.filter(|k| !k.is_empty()) {
            parts.push(walk.node(kwargs.as_any(), 0)?);
        }
        Ok(walk.end(NestNode::Tuple(parts)))
    }

    /// As a Python value again.
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Builder { tensors: self.tensors.iter(), parts: None, made: Vec::new() }
            .build(py, &self.shape.node)
    }

    /// Whether strings are among its tensors.
    pub fn has_strings(&self) -> bool {
        self.shape.kinds.contains(&ValueKind::Strings)
    }

    /// Whether it is made of tensors alone.
    pub fn is_tensors(&self) -> bool {
        self.shape.node.is_tensors()
    }

    /// One tensor.
    pub fn of_tensor(tensor: Tensor) -> Nest {
        static SHAPE: LazyLock<Arc<NestStructure>> = LazyLock::new(|| {
            let kinds = vec![ValueKind::Numbers];
            Arc::new(NestStructure { text: "T".into(), node: NestNode::Tensor, kinds })
        });
        Nest { tensors: vec![tensor], shape: SHAPE.clone() }
    }

    /// Others in the places of its plain values, in their order.
    pub fn joined(&self, parts: Vec<Nest>) -> Nest {
        let mut text = self.shape.text.clone();
        let (mut tensors, mut kinds) = (Vec::new(), Vec::new());
        let mut shapes = Vec::new();
        for part in parts {
            text.push_str(&part.shape.text);
            kinds.extend(&part.shape.kinds);
            tensors.extend(part.tensors);
            shapes.push(part.shape);
        }
        let node = NestNode::Joined { template: self.shape.clone(), parts: shapes };
        Nest { tensors, shape: Arc::new(NestStructure { text, node, kinds }) }
    }
}

/// Makes Python values of nodes.
struct Builder<'a> {
    tensors: std::slice::Iter<'a, Tensor>,
    /// What stands in the places of plain values, inside of a template.
    parts: Option<std::slice::Iter<'a, Arc<NestStructure>>>,
    /// What was made by calls so far.
    made: Vec<Py<PyAny>>,
}

impl<'a> Builder<'a> {
    fn build<'py>(&mut self, py: Python<'py>, node: &'a NestNode) -> PyResult<Bound<'py, PyAny>> {
        Ok(match node {
            NestNode::Tensor => match self.tensors.next() {
                Some(tensor) => Bound::new(py, PyTensor::from(tensor.clone()))?.into_any(),
                None => py.None().into_bound(py),
            },
            NestNode::Strings => {
                let made = next(&mut self.tensors.by_ref().cloned(), ValueKind::Strings);
                match made.transpose().map_err(|e| raise(py, e))? {
                    Some(strings) => PyValue::from(strings).into_pyobject(py)?,
                    None => py.None().into_bound(py),
                }
            }
            NestNode::Plain(value) => match self.parts.as_mut().map(Iterator::next) {
                None => value.bind(py).clone(),
                Some(None) => py.None().into_bound(py),
                Some(Some(part)) => {
                    let outer = self.parts.take();
                    let made = self.build(py, &part.node);
                    self.parts = outer;
                    made?
                }
            },
            NestNode::List(parts) => PyList::new(py, self.all(py, parts)?)?.into_any(),
            NestNode::Tuple(parts) => PyTuple::new(py, self.all(py, parts)?)?.into_any(),
            NestNode::Dict { parts, order } => {
                let values = self.all(py, parts.iter().map(|(_, part)| part))?;
                let made = PyDict::new(py);
                for place in order {
                    made.set_item(&parts[*place].0, &values[*place])?;
                }
                made.into_any()
            }
            NestNode::Made { by, parts } => {
                let made = by.bind(py).call1(PyTuple::new(py, self.all(py, parts)?)?)?;
                self.made.push(made.clone().unbind());
                made
            }
            NestNode::Again(at) => match self.made.get(*at) {
                Some(made) => made.bind(py).clone(),
                None => py.None().into_bound(py),
            },
            NestNode::Joined { template, parts } => {
                let outer = self.parts.replace(parts.iter());
                let made = self.build(py, &template.node);
                self.parts = outer;
                made?
            }
        })
    }

    fn all<'py>(
        &mut self,
        py: Python<'py>,
        parts: impl IntoIterator<Item = &'a NestNode>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        parts.into_iter().map(|part| self.build(py, part)).collect()
    }
}

impl NestWalk {
    fn tensor(&mut self, tensor: Tensor) -> NestNode {
        self.tensors.push(tensor);
        self.kinds.push(ValueKind::Numbers);
        self.text.push('T');
        NestNode::Tensor
    }

    fn strings(&mut self, strings: Strings) -> NestNode {
        strings.take(&mut |part| self.tensors.push(part));
        self.kinds.push(ValueKind::Strings);
        self.text.push('S');
        NestNode::Strings
    }

    fn value(&mut self, value: Value) -> NestNode {
        match value {
            Value::Numbers(tensor) => self.tensor(tensor),
            Value::Strings(strings) => self.strings(strings),
        }
    }

    fn plain(&mut self, given: &Bound<'_, PyAny>, text: std::fmt::Arguments<'_>) -> NestNode {
        let _ = write!(self.text, "{text};");
        NestNode::Plain(given.clone().unbind())
    }

    fn parts<'py>(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<Vec<NestNode>> {
        let made = items.map(|item| self.node(&item, depth + 1)).collect();
        self.text.push(')');
        made
    }

    fn node(&mut self, given: &Bound<'_, PyAny>, depth: usize) -> PyResult<NestNode> {
        if let Ok(tensor) = given.cast::<PyTensor>() {
            return Ok(self.tensor(tensor.get().tensor.clone()));
        }
        if let Ok(strings) = given.cast::<PyStrings>() {
            return Ok(self.strings(strings.get().0.clone()));
        }
        if depth > 64 {
            let text = "values are nested too deep, or contain themselves";
            return Err(pyo3::exceptions::PyValueError::new_err(text));
        }
        let py = given.py();
        if given.is_none() && self.how != LeafPolicy::Elements {
            return Ok(self.plain(given, format_args!("None")));
        }
        if let Ok(tuple) = given.cast::<PyTuple>() {
            if given.hasattr(pyo3::intern!(py, "_fields"))? {
                let class = given.get_type();
                let _ = write!(self.text, "{}(", class.name()?);
                let by = class.getattr("_make")?;
                let by = crate::tensor::sugar(py, "from_parts")?.call1((by,))?.unbind();
                return self.made(given, by, tuple.iter(), depth);
            }
            self.text.push('(');
            return Ok(NestNode::Tuple(self.parts(tuple.iter(), depth)?));
        }
        if let Ok(dict) = given.cast::<PyDict>() {
            return self.dict(dict, depth);
        }
        if self.how == LeafPolicy::Elements {
            return self.element_leaf(given);
        }
        if let Ok(list) = given.cast::<PyList>() {
            self.text.push('[');
            return Ok(NestNode::List(self.parts(list.iter(), depth)?));
        }
        if let Ok(variable) = given.cast::<PyVariable>() {
            return match self.how {
                LeafPolicy::Tensors | LeafPolicy::Elements => {
                    Ok(self.tensor(variable.get().read(py)?))
                }
                LeafPolicy::Arguments => {
                    let number = bind::variable_number(&variable.get().variable);
                    Ok(self.plain(given, format_args!("variable {number}")))
                }
            };
        }
        self.other(given, depth)
    }

    fn made<'py>(
        &mut self,
        given: &Bound<'py, PyAny>,
        by: Py<PyAny>,
        parts: impl Iterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<NestNode> {
        let parts = self.parts(parts, depth)?;
        self.made.push(given.clone().unbind());
        Ok(NestNode::Made { by, parts })
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<NestNode> {
        let keys = dict.keys();
        let given = keys.as_sequence().to_list()?;
        let _ = keys.sort();
        self.text.push('{');
        let mut parts = Vec::new();
        for key in keys.iter() {
            let _ = write!(self.text, "{}:", key.repr()?);
            if let Some(value) = dict.get_item(&key)? {
                parts.push((key.unbind(), self.node(&value, depth + 1)?));
            }
        }
        self.text.push('}');
        let order = match self.how {
            LeafPolicy::Elements => {
                given.iter().map(|key| keys.index(&key)).collect::<PyResult<_>>()?
            }
            LeafPolicy::Arguments | LeafPolicy::Tensors => (0..parts.len()).collect(),
        };
        Ok(NestNode::Dict { parts, order })
    }

    fn element_leaf(&mut self, given: &Bound<'_, PyAny>) -> PyResult<NestNode> {
        static LEAF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let leaf = LEAF.import(given.py(), "tonnage.data.element", "leaf")?.call1((given,))?;
        if let Ok(tensor) = leaf.cast::<PyTensor>() {
            return Ok(self.tensor(tensor.get().tensor.clone()));
        }
        if let Ok(strings) = leaf.cast::<PyStrings>() {
            return Ok(self.strings(strings.get().0.clone()));
        }
        let who = leaf.as_ptr() as usize;
        Ok(self.plain(&leaf, format_args!("{} at {who:x}", leaf.get_type().name()?)))
    }

    fn other(&mut self, given: &Bound<'_, PyAny>, depth: usize) -> PyResult<NestNode> {
        let py = given.py();
        if given.is_instance_of::<PyString>() {
            return Ok(self.plain(given, format_args!("{}", given.repr()?)));
        }
        if let Ok(flatten) = given.getattr(pyo3::intern!(py, "_tonnage_flatten")) {
            // Values of a loop or a branch that are one object now may differ later.
            let once = self.how == LeafPolicy::Arguments;
            if let Some(at) = self.made.iter().position(|one| once && one.is(given)) {
                let _ = write!(self.text, "again {at};");
                return Ok(NestNode::Again(at));
            }
            let (parts, by): (Vec<Bound<'_, PyAny>>, Py<PyAny>) = flatten.call0()?.extract()?;
            let _ = write!(self.text, "{}(", given.get_type().name()?);
            return self.made(given, by, parts.into_iter(), depth);
        }
        let is_number = given.is_instance_of::<PyBool>()
            || given.is_instance_of::<PyInt>()
            || given.is_instance_of::<PyFloat>();
        if is_number && self.how == LeafPolicy::Arguments {
            let class = given.get_type();
            return Ok(self.plain(given, format_args!("{} {}", class.name()?, given.repr()?)));
        }
        if self.how == LeafPolicy::Arguments {
            if let Ok(spec) = given.getattr(pyo3::intern!(py, "_tonnage_spec")) {
                return strings::value(&spec, Want::default()).map(|spec| self.value(spec));
            }
            if !given.hasattr(pyo3::intern!(py, "__array__"))? {
                let class = given.get_type();
                let who = given.as_ptr() as usize;
                return Ok(self.plain(given, format_args!("{} at {who:x}", class.name()?)));
            }
        }
        let is_text = strings::is_text(given);
        match if is_text { None } else { convert::maybe(given, Want::default())? } {
            Some(tensor) => Ok(self.tensor(tensor)),
            None if is_text => strings::strings(given).map(|text| self.strings(text)),
            None => {
                let who = given.as_ptr() as usize;
                Ok(self.plain(given, format_args!("{} at {who:x}", given.get_type().name()?)))
            }
        }
    }
}

impl Tree for Nest {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        self.tensors.iter().for_each(f);
    }

    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Nest> {
        let tensors = self.tensors.into_iter().map(f).collect::<Result<_>>()?;
        Ok(Nest { tensors, shape: self.shape })
    }

    fn map_values(self, f: &mut dyn FnMut(Value) -> Result<Value>) -> Result<Nest> {
        let values =
            FlatValues { tensors: self.tensors, kinds: self.shape.kinds.clone() }.values()?;
        let made = values.into_iter().map(f).collect::<Result<Vec<_>>>()?;
        Ok(Nest { tensors: FlatValues::of(made).tensors, shape: self.shape })
    }

    fn take(self, f: &mut dyn FnMut(Tensor)) {
        self.tensors.into_iter().for_each(f);
    }

    fn share(&self) -> Nest {
        Nest { tensors: self.tensors.clone(), shape: self.shape.clone() }
    }

    fn describe(&self, text: &mut String) {
        text.push_str(&self.shape.text);
    }

    fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
        let before = path.len();
        match &self.shape.node {
            // A call's: the arguments by their positions.
            NestNode::Tuple(parts) => parts.iter().for_each(|part| leaf_paths(part, path, f)),
            node => leaf_paths(node, path, f),
        }
        path.truncate(before);
    }
}

fn leaf_paths(node: &NestNode, path: &mut String, f: &mut dyn FnMut(&str)) {
    let before = path.len();
    let within = |part: &NestNode,
                  name: std::fmt::Arguments<'_>,
                  path: &mut String,
                  f: &mut dyn FnMut(&str)| {
        let _ = write!(path, "[{name}]");
        leaf_paths(part, path, f);
        path.truncate(before);
    };
    match node {
        NestNode::Tensor => f(path),
        NestNode::Strings => (0..3).for_each(|_| f(path)),
        NestNode::Plain(_) | NestNode::Again(_) => {}
        NestNode::Joined { parts, .. } => {
            parts.iter().for_each(|part| leaf_paths(&part.node, path, f));
        }
        NestNode::List(parts) | NestNode::Tuple(parts) | NestNode::Made { parts, .. } => {
            for (i, part) in parts.iter().enumerate() {
                within(part, format_args!("{i}"), path, f);
            }
        }
        NestNode::Dict { parts, .. } => {
            for (i, (key, part)) in parts.iter().enumerate() {
                let name = Python::try_attach(|py| key.bind(py).repr().map(|r| r.to_string()));
                match name {
                    Some(Ok(name)) => within(part, format_args!("{name}"), path, f),
                    _ => within(part, format_args!("{i}"), path, f),
                }
            }
        }
    }
}
