//! Random numbers: their distributions, and the same bits in any piece at any level.

use tonnage_simd::philox::Stream;
use tonnage_simd::random::{
    below_u64, bits_u32, bits_u64, normal_f32, normal_f64, normal_pair_f32, normal_pair_f64,
    truncated_normal_f32, truncated_normal_f64, uniform_f32, uniform_f64,
};
use tonnage_simd::{Level, level};

/// Mean, variance, skewness and kurtosis.
fn moments(x: impl Iterator<Item = f64> + Clone) -> [f64; 4] {
    let n = x.clone().count() as f64;
    let mean = x.clone().sum::<f64>() / n;
    let central = |p: i32| x.clone().map(|x| (x - mean).powi(p)).sum::<f64>() / n;
    let variance = central(2);
    [mean, variance, central(3) / variance.powf(1.5), central(4) / variance.powi(2)]
}

fn near(got: [f64; 4], expected: [f64; 4], tolerance: f64) {
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() < tolerance, "{got} is far from {expected}");
    }
}

#[test]
fn moments_are_those_of_the_distribution() {
    let n = 1 << 20;
    let (mut single, mut double) = (vec![0f32; n], vec![0f64; n]);
    let normal = [0.0, 1.0, 0.0, 3.0];
    normal_f32(level(), Stream::new(3), 0, &mut single);
    near(moments(single.iter().map(|&x| f64::from(x))), normal, 0.02);
    normal_f64(level(), Stream::new(4), 0, &mut double);
    near(moments(double.iter().copied()), normal, 0.02);
    let uniform = [0.5, 1.0 / 12.0, 0.0, 1.8];
    uniform_f32(level(), Stream::new(5), 0, &mut single);
    near(moments(single.iter().map(|&x| f64::from(x))), uniform, 0.005);
    assert!(single.iter().all(|x| (0.0..1.0).contains(x)));
    uniform_f64(level(), Stream::new(6), 0, &mut double);
    near(moments(double.iter().copied()), uniform, 0.005);
    assert!(double.iter().all(|x| (0.0..1.0).contains(x)));
}

#[test]
fn normals_have_the_tails_of_the_distribution() {
    let n = 1 << 20;
    let mut x = vec![0f32; n];
    normal_f32(level(), Stream::new(11), 0, &mut x);
    // Two-sided probabilities of the normal distribution.
    for (beyond, p) in [(1.0, 0.317_310_5), (2.0, 0.045_500_3), (3.0, 0.002_699_8), (4.0, 6.334e-5)]
    {
        let count = x.iter().filter(|x| x.abs() > beyond).count() as f64;
        let expected = p * n as f64;
        assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{count} beyond {beyond}");
    }
}

#[test]
fn the_extreme_words_give_the_extreme_normals() {
    // Angle 0 and a quarter turn; radius words at both ends.
    let [far, zero] = normal_pair_f32(0, 0);
    assert!((6.7..6.8).contains(&far) && zero == 0.0, "{far} {zero}");
    let [_, far] = normal_pair_f32(1, 1 << 30);
    assert!((6.5..6.7).contains(&far), "{far}");
    assert_eq!(normal_pair_f32(u32::MAX, 12345), [0.0, 0.0]);
    let [far, _] = normal_pair_f64(0, 0);
    assert!((8.5..8.7).contains(&far), "{far}");
}

#[test]
fn the_transform_is_box_and_mullers() {
    for i in 0..10_000 {
        let [radius, angle, ..] = Stream::new(1).block(i);
        let u = (f64::from(radius as f32) + 0.5) / 2f64.powi(32);
        let r = (-2.0 * u.ln()).sqrt();
        let turn = std::f64::consts::TAU * f64::from(angle) / 2f64.powi(32);
        let [x, y] = normal_pair_f32(radius, angle).map(f64::from);
        // Near u = 1 the radius is a small difference, which f32 holds to 2^-25 alone.
        assert!((x - r * turn.cos()).abs() < 1e-6 + 3e-4 * f64::from(u8::from(r < 0.1)));
        assert!((y - r * turn.sin()).abs() < 1e-6 + 3e-4 * f64::from(u8::from(r < 0.1)));
    }
}

/// Any piece of the stream, at any level, has the bits of the whole.
fn check<T: Copy + Default + bytemuck::Pod>(fill: fn(Level, Stream, u64, &mut [T])) {
    let stream = Stream { key: [1, 2], nonce: [3, 4] };
    let mut whole = [T::default(); 1000];
    fill(Level::Portable, stream, 0, &mut whole);
    for &level in Level::available() {
        for (start, len) in [(0, 1000), (1, 998), (2, 3), (3, 1), (5, 777), (333, 64), (4, 0)] {
            let mut piece = vec![T::default(); len];
            fill(level, stream, start as u64, &mut piece);
            let (got, expected): (&[u8], &[u8]) =
                (bytemuck::cast_slice(&piece), bytemuck::cast_slice(&whole[start..start + len]));
            assert_eq!(got, expected, "{level} from {start}, {len} elements");
        }
    }
}

#[test]
fn an_element_has_the_same_bits_in_any_chunk_and_at_any_level() {
    check(bits_u32);
    check(bits_u64);
    check(uniform_f32);
    check(uniform_f64);
    check(normal_f32);
    check(normal_f64);
}

#[test]
fn whole_numbers_are_even_and_truncated_normals_stay_inside() {
    let mut x = vec![0u64; 70_000];
    below_u64(level(), Stream::new(7), 0, 7, &mut x);
    for n in 0..7 {
        let count = x.iter().filter(|x| **x == n).count() as f64;
        assert!((count - 10_000.0).abs() < 500.0, "{n} appears {count} times");
    }
    let mut z = vec![0f64; 1 << 17];
    truncated_normal_f64(Stream::new(8), 0, &mut z);
    assert!(z.iter().all(|z| z.abs() < 2.0));
    // Between -2 and 2 the normal distribution has this variance.
    near(moments(z.iter().copied()), [0.0, 0.773_741, 0.0, 2.366], 0.02);
    let mut single = vec![0f32; 1000];
    truncated_normal_f32(Stream::new(8), 5, &mut single[5..]);
    let mut repeated = vec![0f32; 10];
    truncated_normal_f32(Stream::new(8), 500, &mut repeated);
    assert_eq!(repeated, single[500..510]);
}
