//! Three dense layers, trained with Adam.

use tonnage::nn::{Activation, Dense, Sequential};
use tonnage::optim::Optimizer;

use super::training::{cross_entropy, trained};
use super::{Limit, Workload, below, f32s, normal};

pub const MLP: Workload = Workload {
    name: "mlp",
    sizes: &[("batch", 1024), ("inputs", 784), ("width", 1024), ("classes", 10)],
    make: |sizes, budget| {
        let [batch, inputs, width, classes] =
            ["batch", "inputs", "width", "classes"].map(|name| sizes.get(name));
        let model = Sequential::new()
            .then(Dense::new(width))
            .then(Activation::Relu)
            .then(Dense::new(width))
            .then(Activation::Relu)
            .then(Dense::new(classes));
        let data = (normal(&[batch, inputs])?, below(classes, &[batch])?);
        trained(model, Optimizer::adam(1e-3), data, cross_entropy, budget)
    },
    limit: |sizes| {
        let [batch, inputs, width, classes] =
            ["batch", "inputs", "width", "classes"].map(|name| sizes.float(name));
        let (first, rest) = (inputs * width, width * width + width * classes);
        // The gradient with respect to the inputs is not computed.
        let flops = 2.0 * batch * (2.0 * first + 3.0 * rest);
        // Three numbers a weight are read and written; two layers are saved and read again.
        let bytes = f32s(6.0 * (first + rest) + 4.0 * batch * width + batch * inputs);
        Limit { flops, bytes }
    },
};
