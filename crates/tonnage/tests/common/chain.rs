//! Matrices for chains of layers.

use tonnage::{DType, Tensor, Variable, random_normal, set_seed, tensor};

/// A random matrix, in memory.
pub fn drawn(sizes: [usize; 2], scale: f64) -> Tensor {
    let [rows, columns] = sizes;
    let values = (random_normal(sizes, DType::F32).unwrap() * scale).unwrap();
    let values = values.to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([rows as i64, columns as i64]).unwrap()
}

/// Square weights of so many layers, those of a seed.
pub fn weights(layers: usize, width: usize, seed: u64) -> Vec<Variable> {
    set_seed(seed);
    (0..layers)
        .map(|i| Variable::new(&format!("w{i}"), drawn([width, width], 0.3)).unwrap())
        .collect()
}
