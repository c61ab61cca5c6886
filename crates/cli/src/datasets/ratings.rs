//! Ratings of things by people: those of a table, or drawn.
//!
//! Those that the program brings with it are drawn at the start: people and things have hidden vectors of four numbers, a rating is their product
//! with some noise, from 1 to 5 in halves.

use std::path::Path;

use tonnage::data::Dataset;
use tonnage::io::Csv;
use tonnage::{DType, Elementwise, Part, RandomKey, Tensor, concat};

use super::{TrainTestData, said};

const PEOPLE: usize = 600;
const THINGS: usize = 400;
const RATINGS: usize = 20_000;

/// Tables have a row for every number up to the largest: more than this is a mistake.
const MOST: f64 = 1e8;

/// A table with the columns person, thing and rating in this order (more are left alone); people and things are numbers from 0 on.
pub fn load(path: Option<&Path>) -> Result<TrainTestData, String> {
    let made = match path {
        None => drawn(),
        Some(path) => read(path),
    };
    made.map_err(said)
}

fn read(path: &Path) -> tonnage::Result<TrainTestData> {
    let csv = Csv::new().dtype(DType::F64);
    // A table of numbers has names only where its first line is none.
    let names = csv.names(path)?;
    let csv =
        if names.iter().any(|name| name.parse::<f64>().is_err()) { csv.header() } else { csv };
    let table = csv.read(path)?;
    let columns = table.shape().get(1).and_then(|n| n.known()).unwrap_or(0);
    if columns < 3 {
        let what = format!("{}: {columns} columns", path.display());
        let help = "give person, thing and rating";
        return Err(tonnage_core::error::bad_argument("recommender", what, help));
    }
    let column = |i: i64| table.slice(&[Part::ALL, Part::from(i..i + 1)])?.squeeze([1]);
    let (person, thing) = (column(0)?, column(1)?);
    let mut classes = Vec::new();
    for (name, numbers) in [("person", &person), ("thing", &thing)] {
        let whole = numbers.floor()?.equal(numbers)?.logical_and(numbers.greater_equal(0.0)?)?;
        let most = numbers.max_all()?.scalar::<f64>()?;
        if !whole.all(tonnage::Axes::ALL)?.scalar::<bool>()? || most >= MOST {
            let what = format!("{}: a {name} of no number up to {MOST}", path.display());
            let help = "number people and things from 0, without large gaps";
            return Err(tonnage_core::error::bad_argument("recommender", what, help));
        }
        classes.push(most as usize + 1);
    }
    prepared(&person.cast(DType::I64)?, &thing.cast(DType::I64)?, &column(2)?, classes)
}

fn drawn() -> tonnage::Result<TrainTestData> {
    let key = RandomKey::new(0x7261_7465);
    let [a, rest] = key.split();
    let [b, rest] = rest.split();
    let [c, rest] = rest.split();
    let [d, e] = rest.split();
    let person = a.int(0, PEOPLE as i64, [RATINGS], DType::I64)?;
    let thing = b.int(0, THINGS as i64, [RATINGS], DType::I64)?;
    let vectors = |key: RandomKey, n: usize, of: &Tensor| {
        key.normal([n, 4], DType::F32)?.mul(0.7)?.gather(of, 0)
    };
    let product = vectors(c, PEOPLE, &person)?.mul(vectors(d, THINGS, &thing)?)?.sum(-1)?;
    let noise = e.normal([RATINGS], DType::F32)?.mul(0.25)?;
    let rating = product.add(noise)?.add(3.0)?.mul(2.0)?.round()?.div(2.0)?;
    let rating = rating.clip(1.0, 5.0)?;
    prepared(&person, &thing, &rating, vec![PEOPLE, THINGS])
}

fn prepared(
    person: &Tensor,
    thing: &Tensor,
    rating: &Tensor,
    classes: Vec<usize>,
) -> tonnage::Result<TrainTestData> {
    let pairs = concat(&[&person.expand_dims(1)?, &thing.expand_dims(1)?], 1)?;
    let rating = rating.cast(DType::F32)?;
    let (learn, held_out) = Dataset::of((pairs, rating))?.hold_out(10)?;
    let mean = learn.whole().1.mean_all()?.scalar::<f32>()?;
    Ok(TrainTestData { learn, held_out, classes, characters: String::new(), mean })
}
