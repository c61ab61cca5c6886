//! Ratings as products of vectors, with what people and things get on their own (Koren et al. 2009).

use tonnage::nn::{Embedding, Initializer, Layer, Mode};
use tonnage::{Part, Result, Tensor, parameters};

/// Pairs `[rows, 2]` of a person and a thing to ratings `[rows]`. Gradients are rows: a step costs what its batch touches.
pub struct Recommender {
    mean: f32,
    people: Embedding,
    things: Embedding,
    of_people: Embedding,
    of_things: Embedding,
}

parameters!(Recommender { people, things, of_people, of_things });

impl Recommender {
    /// Of these numbers of people and things, and this width of vectors, around a mean rating.
    pub fn new(people: usize, things: usize, width: usize, mean: f32) -> Recommender {
        Recommender {
            mean,
            people: Embedding::new(people, width),
            things: Embedding::new(things, width),
            of_people: Embedding::new(people, 1).starting(Initializer::Zeros),
            of_things: Embedding::new(things, 1).starting(Initializer::Zeros),
        }
    }
}

impl Layer for Recommender {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let column = |i: i64| x.slice(&[Part::ALL, Part::from(i..i + 1)])?.squeeze([1]);
        let (person, thing) = (column(0)?, column(1)?);
        let vectors =
            (self.people.forward(&person, mode)? * self.things.forward(&thing, mode)?)?.sum(-1)?;
        let own =
            (self.of_people.forward(&person, mode)? + self.of_things.forward(&thing, mode)?)?;
        (vectors + own.squeeze([1])?)? + f64::from(self.mean)
    }
}
