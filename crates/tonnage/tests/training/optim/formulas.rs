//! Adadelta, Adamax, Nadam and Ftrl against their formulas, one element at a time in f64: with dense gradients and
//! with gradients of rows, in eager mode and planned.

use super::lookup;
use tonnage::optim::{Adadelta, Adam, Adamax, Ftrl, Nadam, Optimizer};
use tonnage::{Gradient, Tensor, Variable, function, tensor};

use crate::common::{close, own_context};

/// One element: what it is, and what is remembered of it.
#[derive(Clone, Copy)]
struct Element {
    value: f64,
    slots: [f64; 2],
}

/// A step of an element by its gradient; steps count from 1.
type Formula = fn(&mut Element, f64, f64);

const RATE: f64 = 0.2;

fn adadelta(e: &mut Element, g: f64, _: f64) {
    let [squares, steps] = &mut e.slots;
    *squares = 0.9 * *squares + 0.1 * g * g;
    let step = g * (*steps + 1e-5).sqrt() / (*squares + 1e-5).sqrt();
    *steps = 0.9 * *steps + 0.1 * step * step;
    e.value -= RATE * step;
}

fn adamax(e: &mut Element, g: f64, step: f64) {
    let [m, largest] = &mut e.slots;
    *m = 0.8 * *m + 0.2 * g;
    *largest = (0.95 * *largest).max(g.abs());
    e.value -= RATE / (1.0 - 0.8f64.powf(step)) * *m / (*largest + 1e-6);
}

fn nadam(e: &mut Element, g: f64, step: f64) {
    let momentum = |step: f64| 0.8 * (1.0 - 0.5 * 0.96f64.powf(step));
    let product = |steps: f64| (1..=steps as u64).map(|i| momentum(i as f64)).product::<f64>();
    let [m, v] = &mut e.slots;
    *m = 0.8 * *m + 0.2 * g;
    *v = 0.95 * *v + 0.05 * g * g;
    let ahead = momentum(step + 1.0) * *m / (1.0 - product(step + 1.0));
    let fresh = (1.0 - momentum(step)) * g / (1.0 - product(step));
    let root = (*v / (1.0 - 0.95f64.powf(step))).sqrt() + 1e-6;
    e.value -= RATE * (ahead + fresh) / root;
}

fn adam(e: &mut Element, g: f64, step: f64, hat: bool) {
    let [m, v] = &mut e.slots;
    *m = 0.8 * *m + 0.2 * g;
    *v = 0.95 * *v + 0.05 * g * g;
    let (first, second) = (1.0 - 0.8f64.powf(step), 1.0 - 0.95f64.powf(step));
    let root = match hat {
        true => (v.sqrt() + 0.5) / second.sqrt(),
        false => (*v / second).sqrt() + 0.5,
    };
    e.value -= RATE * (*m / first) / root;
}

fn ftrl(e: &mut Element, g: f64, _: f64) {
    let (start, l1, l2, shrinkage, beta) = (0.3, 0.05, 0.1, 0.02, 0.4);
    let [squares, linear] = &mut e.slots;
    let before = (*squares + start).sqrt();
    *squares += g * g;
    let after = (*squares + start).sqrt();
    *linear += g + 2.0 * shrinkage * e.value - (after - before) / RATE * e.value;
    let quadratic = (after + beta) / RATE + 2.0 * l2;
    e.value = (linear.clamp(-l1, l1) - *linear) / quadratic;
}

/// Every rule with its formula, and whether rows without a gradient stay as they are.
fn rules() -> [(Optimizer, Formula, bool); 6] {
    let adam = Adam { beta1: 0.8, beta2: 0.95, epsilon: 1e-6, ..Adam::default() };
    let large = Adam { epsilon: 0.5, ..adam };
    let hat = Adam { epsilon_hat: true, ..large };
    let pull =
        Ftrl { start: 0.3, l1: 0.05, l2: 0.1, shrinkage: 0.02, beta: 0.4, ..Ftrl::default() };
    [
        (Optimizer::new(Adadelta { rho: 0.9, epsilon: 1e-5 }, RATE), adadelta, true),
        (Optimizer::new(large, RATE), |e, g, step| self::adam(e, g, step, false), true),
        (Optimizer::new(hat, RATE), |e, g, step| self::adam(e, g, step, true), true),
        (Optimizer::new(Adamax(adam), RATE), adamax, true),
        (Optimizer::new(Nadam(adam), RATE), nadam, false),
        (Optimizer::new(pull, RATE), ftrl, true),
    ]
}

const START: [f64; 8] = [1.0, -2.0, 0.5, 3.0, -0.25, 0.75, 0.0, 1.5];

fn elements() -> Vec<Element> {
    START.iter().map(|value| Element { value: *value, slots: [0.0; 2] }).collect()
}

fn table(name: &str) -> Variable {
    Variable::new(name, tensor(START.to_vec()).unwrap().reshape([4, 2]).unwrap()).unwrap()
}

fn values(elements: &[Element]) -> Vec<f64> {
    elements.iter().map(|e| e.value).collect()
}

#[test]
fn dense_steps_are_those_of_the_formulas_eager_and_planned() {
    let _context = own_context();
    for ((one, formula, _), (other, ..)) in rules().into_iter().zip(rules()) {
        let (eager, planned, mut expected) = (table("eager"), table("planned"), elements());
        let step = function(|g: Tensor| other.apply([&planned], &[Gradient::Dense(g)]));
        for number in 1..=5 {
            let g: Vec<f64> =
                (0..8).map(|i| f64::from((i * number * 7) % 11) / 5.0 - 1.0).collect();
            let given = tensor(g.clone()).unwrap().reshape([4, 2]).unwrap();
            one.apply([&eager], &[Gradient::Dense(given.clone())]).unwrap();
            step.call(given).unwrap();
            for (e, g) in expected.iter_mut().zip(&g) {
                formula(e, *g, f64::from(number));
            }
            close(&eager.read().unwrap(), &values(&expected), 1e-12);
            close(&planned.read().unwrap(), &values(&expected), 1e-12);
        }
    }
}

#[test]
fn steps_of_rows_are_those_of_the_formulas_for_the_rows_that_are_asked_for() {
    let _context = own_context();
    for (optimizer, formula, by_rows) in rules() {
        let (rows, mut expected) = (table("rows"), elements());
        let step = function(|indices: Tensor| {
            let gradient = lookup(&rows, &indices)?;
            assert!(matches!(gradient, Gradient::Rows(_)));
            optimizer.apply([&rows], &[gradient])
        });
        for (number, indices) in (1..).zip([[2i64, 0, 2], [3, 3, 3], [0, 2, 3]]) {
            step.call(tensor(indices).unwrap()).unwrap();
            for (i, e) in expected.iter_mut().enumerate() {
                // The sum of squares of the rows, each as often as it is asked for.
                let times = indices.iter().filter(|row| **row as usize == i / 2).count() as f64;
                if times > 0.0 || !by_rows {
                    formula(e, 2.0 * e.value * times, f64::from(number));
                }
            }
            close(&rows.read().unwrap(), &values(&expected), 1e-12);
        }
    }
}
