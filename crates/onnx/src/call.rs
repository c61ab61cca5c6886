//! One node as a rule sees it: inputs, attributes, and ways to refuse what is not supported.

use std::sync::Arc;

use tonnage::{DType, Elementwise, Error, Result, Tensor, TensorType, bind};

use crate::import::{Attributes, Importer, Need, Opsets, Scope};
use crate::message::{
    AttributeValue, GraphMessage, NodeMessage, StoredTensor, dtype_name, dtype_of,
};
use crate::value::Value;
use crate::weights::Place;
use crate::wire::bad_file;

/// A node that is run.
pub struct Call<'c, 'm> {
    /// The node.
    pub node: &'m NodeMessage,
    /// What it reads.
    pub inputs: Vec<Value>,
    /// Its attributes.
    pub attributes: Attributes<'m>,
    /// The version of its domain's ops.
    pub version: i64,
    /// The version of each domain's ops.
    pub opsets: &'m Opsets,
    /// Values around it.
    pub scope: &'c Scope<'c>,
    /// Who runs it.
    pub importer: &'c Importer<'m>,
}

impl<'m> Call<'_, 'm> {
    /// The error of something that is not supported, or not as the standard has it.
    pub fn refuse(&self, what: impl Into<String>) -> Error {
        bad_file(&self.importer.model.file.path, what, "this is not supported")
    }

    /// A tensor that it has to have.
    pub fn x(&self, at: usize) -> Result<Tensor> {
        self.read(self.raw(at)?)
    }

    /// A value that was handed on, as ops read it.
    pub fn read(&self, tensor: Tensor) -> Result<Tensor> {
        let Importer { model, weights, traced, .. } = self.importer;
        weights.read(model, tensor, traced.as_ref())
    }

    /// The same, as it is in the file where it is a weight.
    pub fn raw(&self, at: usize) -> Result<Tensor> {
        match self.inputs.get(at) {
            Some(Value::Tensor(tensor)) => Ok(tensor.clone()),
            Some(Value::Sequence(_)) => Err(self.refuse(format!("input {at} is a sequence"))),
            Some(Value::Absent) | None => Err(self.refuse(format!("input {at} is missing"))),
        }
    }

    /// The type of a tensor that it has to have.
    pub fn ty(&self, at: usize) -> Result<TensorType> {
        Ok(self.raw(at)?.ty())
    }

    /// A tensor that it may have.
    pub fn maybe(&self, at: usize) -> Result<Option<Tensor>> {
        match self.inputs.get(at) {
            None | Some(Value::Absent) => Ok(None),
            Some(_) => self.x(at).map(Some),
        }
    }

    /// All of its inputs.
    pub fn all(&self) -> Result<Vec<Tensor>> {
        (0..self.inputs.len()).map(|at| self.x(at)).collect()
    }

    /// The sequence that it has to have.
    pub fn sequence(&self, at: usize) -> Result<Vec<Tensor>> {
        match self.inputs.get(at) {
            Some(Value::Sequence(tensors)) => Ok(tensors.clone()),
            _ => Err(self.refuse(format!("input {at} is no sequence"))),
        }
    }

    /// Whether an output is asked for.
    pub fn wants(&self, at: usize) -> bool {
        self.node.outputs.get(at).is_some_and(|name| !name.is_empty())
    }

    /// What is made of inputs, and is of a type: once, where those are weights that are in memory.
    pub fn made(
        &self,
        of: &[usize],
        how: &'static str,
        ty: TensorType,
        make: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Result<Tensor> {
        let raw = of.iter().map(|at| self.raw(*at)).collect::<Result<Vec<_>>>()?;
        let make = Arc::new(make);
        let once = make.clone();
        let Importer { model, weights, .. } = self.importer;
        match weights.made(model, &raw, how, ty, move |all| once(all))? {
            Some(made) => Ok(made),
            None => make(&of.iter().map(|at| self.x(*at)).collect::<Result<Vec<_>>>()?),
        }
    }

    /// Whether a tensor is a weight that is trained: its numbers are not known.
    pub fn is_trained(&self, tensor: &Tensor) -> Result<bool> {
        let Importer { model, weights, .. } = self.importer;
        Ok(weights.place() == Place::Trained && model.is_trained(tensor)?)
    }

    /// An image channels-last.
    pub fn last(&self, image: &Tensor) -> Result<Tensor> {
        self.importer.images.last(image)
    }

    /// An image channels-last, where it lies so.
    pub fn under(&self, image: &Tensor) -> Option<Tensor> {
        self.importer.images.under(image)
    }

    /// An image that lies channels-last, channels-first.
    pub fn first(&self, under: Tensor) -> Result<Tensor> {
        self.importer.images.first(under)
    }

    /// A tensor whose numbers have to be known.
    pub fn known(&self, at: usize) -> Result<Tensor> {
        let tensor = self.raw(at)?;
        let ahead = &self.importer.weights.ahead;
        if let Some(made) = ahead.find(&tensor) {
            return made.computed(ahead);
        }
        match tensor.is_symbolic() {
            false => Ok(tensor),
            true => Err(self.importer.needs(Need::Numbers(self.node.inputs[at].clone()))),
        }
    }

    /// The whole numbers of an input.
    pub fn numbers(&self, at: usize) -> Result<Vec<i64>> {
        let tensor = self.known(at)?;
        bind::outside_of_traces(|| tensor.cast(DType::I64)?.to_vec::<i64>())
    }

    /// The whole numbers of an input that may be missing.
    pub fn maybe_numbers(&self, at: usize) -> Result<Option<Vec<i64>>> {
        self.maybe(at)?.map(|_| self.numbers(at)).transpose()
    }

    /// The only number of an input.
    pub fn number(&self, at: usize) -> Result<i64> {
        match self.numbers(at)?[..] {
            [one] => Ok(one),
            ref all => Err(self.refuse(format!("input {at} has {} numbers, not one", all.len()))),
        }
    }

    /// The floats of an input.
    pub fn floats_of(&self, at: usize) -> Result<Vec<f64>> {
        let tensor = self.known(at)?;
        bind::outside_of_traces(|| tensor.cast(DType::F64)?.to_vec::<f64>())
    }

    /// An attribute.
    pub fn attribute(&self, name: &str) -> Option<&'m AttributeValue> {
        self.attributes.iter().find(|found| found.0 == name).map(|found| found.1)
    }

    fn odd(&self, name: &str) -> Error {
        self.refuse(format!("the attribute `{name}` is of another type"))
    }

    /// A whole number.
    pub fn maybe_int(&self, name: &str) -> Result<Option<i64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Int(value)) => Ok(Some(*value)),
            Some(_) => Err(self.odd(name)),
        }
    }

    /// A whole number, or what it is where it is left out.
    pub fn int(&self, name: &str, otherwise: i64) -> Result<i64> {
        Ok(self.maybe_int(name)?.unwrap_or(otherwise))
    }

    /// Whether a number is not 0.
    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.int(name, 0)? != 0)
    }

    /// Whole numbers.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Ints(values)) => Ok(Some(values.clone())),
            Some(_) => Err(self.odd(name)),
        }
    }

    /// A float.
    pub fn maybe_float(&self, name: &str) -> Result<Option<f64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Float(value)) => Ok(Some(f64::from(*value))),
            Some(_) => Err(self.odd(name)),
        }
    }

    /// A float, or what it is where it is left out.
    pub fn float(&self, name: &str, otherwise: f64) -> Result<f64> {
        Ok(self.maybe_float(name)?.unwrap_or(otherwise))
    }

    /// Floats.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Floats(values)) => Ok(Some(values.clone())),
            Some(_) => Err(self.odd(name)),
        }
    }

    /// A text, or what it is where it is left out.
    pub fn text(&self, name: &str, otherwise: &str) -> Result<String> {
        match self.attribute(name) {
            None => Ok(otherwise.to_string()),
            Some(AttributeValue::Text(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Some(_) => Err(self.odd(name)),
        }
    }

    /// Texts.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Texts(all)) => Ok(Some(
                all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect(),
            )),
            Some(_) => Err(self.odd(name)),
        }
    }

    /// A graph.
    pub fn graph(&self, name: &str) -> Result<&'m GraphMessage> {
        match self.attribute(name) {
            Some(AttributeValue::Graph(graph)) => Ok(graph),
            _ => Err(self.odd(name)),
        }
    }

    /// A tensor among the attributes.
    pub fn stored(&self, name: &str) -> Option<&'m StoredTensor> {
        match self.attribute(name) {
            Some(AttributeValue::Tensor(stored)) => Some(stored),
            _ => None,
        }
    }

    /// A dtype by its number.
    pub fn dtype(&self, number: i64) -> Result<DType> {
        dtype_of(number).ok_or_else(|| self.refuse(format!("the dtype {}", dtype_name(number))))
    }

    /// The dtype of an attribute.
    pub fn maybe_dtype(&self, name: &str) -> Result<Option<DType>> {
        self.maybe_int(name)?.filter(|n| *n != 0).map(|number| self.dtype(number)).transpose()
    }

    /// The lengths of a tensor.
    pub fn sizes(&self, tensor: &Tensor) -> Result<Vec<usize>> {
        match tensor.shape().sizes() {
            Some(sizes) => Ok(sizes.to_vec()),
            None => Err(self.importer.needs(Need::Alone)),
        }
    }

    /// An axis, counted from the front.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let from_front = if axis < 0 { axis + rank as i64 } else { axis };
        match usize::try_from(from_front) {
            Ok(at) if at < rank => Ok(at),
            _ => Err(self.refuse(format!("axis {axis} of {rank}"))),
        }
    }

    /// Axes of an input from some version on, of an attribute before.
    pub fn axes(&self, at: usize) -> Result<Option<Vec<i64>>> {
        match self.ints("axes")? {
            Some(axes) => Ok(Some(axes)),
            None => self.maybe_numbers(at),
        }
    }

    /// A length.
    pub fn length(&self, n: i64) -> Result<usize> {
        usize::try_from(n).map_err(|_| self.refuse(format!("a length of {n}")))
    }
}

/// Whole numbers as a known tensor.
pub fn int_tensor(values: &[i64], shape: &[usize]) -> Result<Tensor> {
    bind::outside_of_traces(|| tonnage::tensor(values.to_vec())?.reshape(shape))
}

/// Floats as a known tensor of a dtype.
pub fn float_tensor(values: Vec<f64>, shape: &[usize], dtype: DType) -> Result<Tensor> {
    bind::outside_of_traces(|| tonnage::tensor(values)?.cast(dtype)?.reshape(shape))
}

/// A known number.
pub fn scalar(value: impl Into<tonnage::Scalar>, dtype: DType) -> Result<Tensor> {
    bind::outside_of_traces(|| tonnage::full(value, dtype, tonnage::Shape::scalar()))
}

/// One tensor as the results of a node.
pub fn one(tensor: Tensor) -> Result<Vec<Value>> {
    Ok(vec![Value::Tensor(tensor)])
}
