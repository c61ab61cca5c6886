//! Sizes that the data decided, by the symbols that stand for them in the plan.

use tonnage_core::TensorType;
use tonnage_core::attrs::Attrs;
use tonnage_core::dim::{Dim, Symbol};

/// What symbols stand for in one run.
#[derive(Clone, Default)]
pub struct DecidedSizes {
    lengths: Vec<(Symbol, usize)>,
}

impl DecidedSizes {
    /// A planned type, with the sizes that are decided.
    pub fn ty(&self, planned: &TensorType) -> TensorType {
        planned.substitute(&|symbol| self.find(symbol))
    }

    /// Planned attributes, with the sizes that are decided.
    pub fn attrs(&self, planned: &Attrs) -> Attrs {
        planned.substitute(&|symbol| self.find(symbol))
    }

    /// Remembers the sizes of a value for the symbols among its dims. One that is decided stays what it is.
    pub fn decide(&mut self, planned: &TensorType, sizes: &[usize]) {
        for (dim, size) in planned.shape.iter().zip(sizes) {
            dim.symbols(&mut |symbol| {
                if *dim == Dim::symbol(symbol.clone()) && self.find(symbol).is_none() {
                    self.lengths.push((symbol.clone(), *size));
                }
            });
        }
    }

    /// Forgets the symbols of a type: an iteration decides them anew.
    pub fn forget(&mut self, planned: &TensorType) {
        self.lengths.retain(|(symbol, _)| !names(planned, symbol));
    }

    fn find(&self, symbol: &Symbol) -> Option<Dim> {
        self.lengths.iter().find(|(s, _)| s == symbol).map(|(_, n)| Dim::Known(*n))
    }
}

/// Whether a symbol is in a type.
fn names(ty: &TensorType, symbol: &Symbol) -> bool {
    let mut found = false;
    ty.shape.iter().for_each(|dim| dim.symbols(&mut |s| found |= s == symbol));
    found
}

#[cfg(test)]
mod tests {
    use tonnage_core::DType;

    use super::*;

    #[test]
    fn what_is_decided_stays_until_it_is_forgotten() {
        let (n, m) = (Dim::symbol(Symbol::new("n")), Dim::symbol(Symbol::new("m")));
        let ty = |dims: &[Dim]| TensorType::new(DType::F32, dims);
        let of = |sizes: &DecidedSizes| sizes.ty(&ty(&[n.clone(), m.clone()])).shape.sizes();
        let mut sizes = DecidedSizes::default();
        sizes.decide(&ty(std::slice::from_ref(&n)), &[3]);
        sizes.decide(&ty(&[n.clone(), m.clone()]), &[4, 5]);
        assert_eq!(of(&sizes).as_deref(), Some(&[3, 5][..]));
        sizes.forget(&ty(std::slice::from_ref(&n)));
        assert_eq!(of(&sizes), None);
        sizes.decide(&ty(std::slice::from_ref(&n)), &[4]);
        assert_eq!(of(&sizes).as_deref(), Some(&[4, 5][..]));
    }
}
