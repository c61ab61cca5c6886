//! The slopes of the primitives, in primitives.
//!
//! Decision: `docs/decisions/gradients-of-elementwise-ops.md`.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

use tonnage_core::error::Result;
use tonnage_core::tile::{Instr, Prim, Reg};

use super::chain::zero_if_unused;
use super::derive::GradientBuilder;

impl GradientBuilder {
    /// g times the slope of a primitive at x, where it has one.
    pub fn unary(&mut self, instr: &Instr, x: Reg, y: Reg, g: Reg) -> Result<Option<Reg>> {
        if !instr.dtype.is_float() {
            return Ok(None);
        }
        let one_over = |b: &mut GradientBuilder, d: Reg| b.two(Prim::Div, g, d);
        Ok(Some(match instr.prim {
            Prim::Neg => self.one(Prim::Neg, g),
            Prim::Abs => {
                let sign = self.one(Prim::Sign, x);
                self.mul(g, sign)
            }
            Prim::Sqrt => {
                let half = self.times(g, 0.5);
                let product = self.two(Prim::Div, half, y);
                zero_if_unused(&mut self.made, g, product)
            }
            Prim::Rsqrt => {
                let square = self.one(Prim::Square, y);
                let cube = self.mul(square, y);
                let slope = self.times(cube, -0.5);
                let product = self.mul(g, slope);
                zero_if_unused(&mut self.made, g, product)
            }
            Prim::Square => {
                let twice = self.times(x, 2.0);
                self.mul(g, twice)
            }
            Prim::Reciprocal => {
                let square = self.one(Prim::Square, y);
                let part = self.mul(g, square);
                let product = self.one(Prim::Neg, part);
                zero_if_unused(&mut self.made, g, product)
            }
            Prim::Exp => self.mul(g, y),
            Prim::Expm1 => self.made.push(Prim::Fma, &[g, y, g]),
            Prim::Log => one_over(self, x),
            Prim::Log1p => {
                let d = self.plus(x, 1.0);
                one_over(self, d)
            }
            Prim::Sin => {
                let cos = self.one(Prim::Cos, x);
                self.mul(g, cos)
            }
            Prim::Cos => {
                let sin = self.one(Prim::Sin, x);
                let part = self.mul(g, sin);
                self.one(Prim::Neg, part)
            }
            Prim::Tan => {
                let square = self.one(Prim::Square, y);
                self.made.push(Prim::Fma, &[g, square, g])
            }
            Prim::Asin => self.over_root(g, x, -1.0, 1.0, false),
            Prim::Acos => self.over_root(g, x, -1.0, 1.0, true),
            Prim::Asinh => self.over_root(g, x, 1.0, 1.0, false),
            Prim::Acosh => self.over_root(g, x, 1.0, -1.0, false),
            Prim::Atan => {
                let d = self.square_plus(x, 1.0, 1.0);
                one_over(self, d)
            }
            Prim::Atanh => {
                let d = self.square_plus(x, -1.0, 1.0);
                one_over(self, d)
            }
            Prim::Sinh => {
                let cosh = self.one(Prim::Cosh, x);
                self.mul(g, cosh)
            }
            Prim::Cosh => {
                let sinh = self.one(Prim::Sinh, x);
                self.mul(g, sinh)
            }
            Prim::Tanh => {
                let slope = self.square_plus(y, -1.0, 1.0);
                self.mul(g, slope)
            }
            Prim::Sigmoid => self.logistic(g, y),
            Prim::Softplus => {
                let sigmoid = self.one(Prim::Sigmoid, x);
                self.mul(g, sigmoid)
            }
            Prim::Silu => {
                // s + y (1 - s)
                let s = self.one(Prim::Sigmoid, x);
                let rest = self.one(Prim::Neg, s);
                let rest = self.plus(rest, 1.0);
                let slope = self.made.push(Prim::Fma, &[y, rest, s]);
                self.mul(g, slope)
            }
            Prim::Gelu => {
                // The share below x, and x times the density.
                let scaled = self.times(x, -FRAC_1_SQRT_2);
                let share = self.one(Prim::Erfc, scaled);
                let share = self.times(share, 0.5);
                let density = self.bell(x, -0.5, 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2);
                let slope = self.made.push(Prim::Fma, &[x, density, share]);
                self.mul(g, slope)
            }
            Prim::GeluTanh => {
                // s + x s (1 - s) t' for t = k (x + 0.044715 x^3).
                let k = 2.0 * (2.0 / PI).sqrt();
                let square = self.one(Prim::Square, x);
                let inner = self.times(square, 0.044715 * k);
                let inner = self.plus(inner, k);
                let t = self.mul(x, inner);
                let s = self.one(Prim::Sigmoid, t);
                let steep = self.times(square, 3.0 * 0.044715 * k);
                let steep = self.plus(steep, k);
                let steep = self.mul(x, steep);
                let steep = self.logistic(steep, s);
                let slope = self.two(Prim::Add, s, steep);
                self.mul(g, slope)
            }
            Prim::Erf => {
                let slope = self.bell(x, -1.0, FRAC_2_SQRT_PI);
                self.mul(g, slope)
            }
            Prim::Erfc => {
                let slope = self.bell(x, -1.0, -FRAC_2_SQRT_PI);
                self.mul(g, slope)
            }
            Prim::Lgamma => {
                let slope = self.one(Prim::Digamma, x);
                self.mul(g, slope)
            }
            Prim::Digamma => {
                let one = self.number(1, x);
                let slope = self.two(Prim::Polygamma, one, x);
                self.mul(g, slope)
            }
            Prim::Cast(to) if to.is_float() => self.cast(g, instr.dtype),
            Prim::RoundTo(_) => g,
            // Flat wherever they have a slope at all.
            _ => return Ok(None),
        }))
    }

    /// `g * y * (1 - y)`
    fn logistic(&mut self, g: Reg, y: Reg) -> Reg {
        let rest = self.one(Prim::Neg, y);
        let rest = self.plus(rest, 1.0);
        let both = self.mul(y, rest);
        self.mul(g, both)
    }

    /// `a * x^2 + b`
    fn square_plus(&mut self, x: Reg, a: f64, b: f64) -> Reg {
        let square = self.one(Prim::Square, x);
        let square = if a == 1.0 { square } else { self.one(Prim::Neg, square) };
        self.plus(square, b)
    }

    /// `g / sqrt(a * x^2 + b)`, or less than 0 by as much.
    fn over_root(&mut self, g: Reg, x: Reg, a: f64, b: f64, negative: bool) -> Reg {
        let inside = self.square_plus(x, a, b);
        let slope = self.one(Prim::Rsqrt, inside);
        let made = self.mul(g, slope);
        if negative { self.one(Prim::Neg, made) } else { made }
    }

    /// `height * e^(width * x^2)`
    fn bell(&mut self, x: Reg, width: f64, height: f64) -> Reg {
        let square = self.one(Prim::Square, x);
        let square = self.times(square, width);
        let bell = self.one(Prim::Exp, square);
        self.times(bell, height)
    }

    pub fn binary(
        &mut self,
        prim: Prim,
        a: Reg,
        b: Reg,
        y: Reg,
        g: Reg,
    ) -> (Option<Reg>, Option<Reg>) {
        if !self.made.register(a).is_float() || !self.made.register(g).is_float() {
            return (None, None);
        }
        let (left, right) = match prim {
            // The order is a whole number.
            Prim::Polygamma => {
                let next = self.plus(a, 1.0);
                let slope = self.two(Prim::Polygamma, next, b);
                return (None, Some(self.mul(g, slope)));
            }
            Prim::Add => (g, g),
            Prim::Sub => (g, self.one(Prim::Neg, g)),
            Prim::Mul => (self.mul(g, b), self.mul(g, a)),
            Prim::Div => {
                let left = self.two(Prim::Div, g, b);
                let right = self.mul(left, y);
                (left, self.one(Prim::Neg, right))
            }
            Prim::Mod => {
                let times = self.two(Prim::FloorDiv, a, b);
                let right = self.mul(g, times);
                (g, self.one(Prim::Neg, right))
            }
            Prim::Pow => (self.power_of_base(a, b, g), self.power_of_exponent(a, y, g)),
            Prim::Max | Prim::Min => {
                let right_wins = match prim {
                    Prim::Max => self.two(Prim::Lt, a, b),
                    _ => self.two(Prim::Lt, b, a),
                };
                let zero = self.number(0, g);
                (self.select(right_wins, zero, g), self.select(right_wins, g, zero))
            }
            Prim::Atan2 => {
                let (aa, bb) = (self.one(Prim::Square, a), self.one(Prim::Square, b));
                let square = self.two(Prim::Add, aa, bb);
                let part = self.two(Prim::Div, g, square);
                let (left, right) = (self.mul(part, b), self.mul(part, a));
                (left, self.one(Prim::Neg, right))
            }
            Prim::Hypot => {
                let part = self.two(Prim::Div, g, y);
                (self.mul(part, a), self.mul(part, b))
            }
            _ => return (None, None),
        };
        (Some(left), Some(right))
    }

    /// `g * b * a^(b - 1)`, and 0 where b is: there 0 would meet an infinity.
    fn power_of_base(&mut self, a: Reg, b: Reg, g: Reg) -> Reg {
        let less = self.plus(b, -1.0);
        let power = self.two(Prim::Pow, a, less);
        let slope = self.mul(b, power);
        let zero = self.number(0, b);
        let flat = self.two(Prim::Eq, b, zero);
        let slope = self.select(flat, zero, slope);
        self.mul(g, slope)
    }

    /// `g * y * ln a`, and 0 where a is not positive.
    fn power_of_exponent(&mut self, a: Reg, y: Reg, g: Reg) -> Reg {
        let zero = self.number(0, a);
        let positive = self.two(Prim::Gt, a, zero);
        let one = self.number(1, a);
        let a = self.select(positive, a, one);
        let log = self.one(Prim::Log, a);
        let slope = self.mul(y, log);
        let slope = self.select(positive, slope, zero);
        self.mul(g, slope)
    }
}
