//! What is stated of errors, over a stride of all inputs, over samples, and against exact values.

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_simd::prim::Binary;

use super::*;

#[test]
fn soak_every_f32_function_keeps_its_stated_error() {
    // A stride of all inputs; in a soak every single one.
    let all = std::env::var_os("TONNAGE_SOAK").is_some();
    for worst in if all { all_f32() } else { sweep_f32(0, u32::MAX, 40_009) } {
        let Worst { subject, level, ulp, at } = worst;
        assert!(ulp <= subject.stated_f32, "{:?} {level}: {ulp} ulp at {at:e}", subject.prim);
    }
}

fn ulp_f64(got: f64, exact: f64) -> f64 {
    if got.to_bits() == exact.to_bits() || (got.is_nan() && exact.is_nan()) {
        return 0.0;
    }
    if got.is_nan() || exact.is_nan() || (got == 0.0 && exact == 0.0) {
        return f64::INFINITY;
    }
    // Along the line of all numbers, on which neighbours differ by one.
    let place = |x: f64| (x.abs().to_bits() as i64) * if x.is_sign_negative() { -1 } else { 1 };
    (place(got) - place(exact)).abs() as f64
}

/// All exponents, then ranges where functions have their bends.
fn samples_f64() -> Vec<f64> {
    let mut out = vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0];
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ state >> 29
    };
    out.extend((0..20_000).map(|_| f64::from_bits(next())));
    for range in [1e-9, 0.01, 0.7, 1.5, 8.0, 30.0, 800.0, 1e6] {
        out.extend((0..4000).map(|_| ((next() >> 11) as f64 / 2f64.powi(52) - 1.0) * range));
    }
    out
}

#[test]
fn every_f64_function_keeps_its_stated_error_on_samples() {
    let inputs = samples_f64();
    let mut out = vec![0f64; inputs.len()];
    let mut bad = Vec::new();
    for subject in SUBJECTS {
        let function = subject.prim.function(DType::F64).expect("every subject has one");
        for &level in Level::available() {
            function(level, cast_slice_mut(&mut out), cast_slice(&inputs));
            let worst = out
                .iter()
                .zip(&inputs)
                .map(|(&got, &x)| (ulp_f64(got, (subject.exact)(x)), x))
                .fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
            if worst.0 > subject.stated_f64 {
                bad.push((subject.prim, level, worst));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

/// Edges of every kind, and ordinary numbers.
fn pairs() -> (Vec<f64>, Vec<f64>) {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        1e-310,
        1e300,
        -1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1.5,
        7.0,
        -7.0,
        1e15,
        9007199254740993.0,
    ];
    let mut pairs: Vec<(f64, f64)> =
        edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect();
    let x = samples_f64();
    pairs.extend(x.iter().zip(x.iter().rev()).map(|(&a, &b)| (a.abs(), b)));
    // Bases near 1 with exponents that make the power large: where a logarithm in one float
    // would lose ten bits.
    pairs.extend(
        (1..2000).map(|i| (1.0 + f64::from(i) * 2e-4, 700.0 / (f64::from(i) * 2e-4).ln_1p())),
    );
    pairs.into_iter().unzip()
}

#[test]
fn functions_of_two_floats_have_libms_special_cases_and_keep_their_error() {
    let (a, b) = pairs();
    type Exact = fn(f64, f64) -> f64;
    let subjects: [(Binary, Exact, f64, f64); 3] = [
        (Binary::Pow, f64::powf, 1.0, 2.0),
        (Binary::Atan2, f64::atan2, 3.0, 4.0),
        (Binary::Hypot, f64::hypot, 2.0, 3.0),
    ];
    let single = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
    let (a32, b32) = (single(&a), single(&b));
    for (prim, exact, stated_f32, stated_f64) in subjects {
        for &level in Level::available() {
            let mut out = vec![0f64; a.len()];
            let function = prim.function(DType::F64).expect("there is one");
            function(level, cast_slice_mut(&mut out), cast_slice(&a), cast_slice(&b));
            for i in 0..a.len() {
                let ulp = ulp_f64(out[i], exact(a[i], b[i]));
                assert!(
                    ulp <= stated_f64,
                    "{prim:?} {level} {:e} {:e}: {:e}, {ulp} ulp",
                    a[i],
                    b[i],
                    out[i]
                );
            }
            let mut out = vec![0f32; a.len()];
            let function = prim.function(DType::F32).expect("there is one");
            function(level, cast_slice_mut(&mut out), cast_slice(&a32), cast_slice(&b32));
            for i in 0..a.len() {
                let (a, b) = (f64::from(a32[i]), f64::from(b32[i]));
                let ulp = ulp_f32(out[i], exact(a, b));
                assert!(ulp <= stated_f32, "{prim:?} {level} {a:e} {b:e}: {:e}, {ulp} ulp", out[i]);
            }
        }
    }
}

/// Values computed with forty digits.
#[test]
fn erf_and_erfc_of_f64_agree_with_exact_values() {
    let table: [(f64, f64, f64, f64); 24] = [
        (0.001, 0.0011283787909692365, 0.9988716212090307, 1.0011283787909693),
        (0.1, 0.1124629160182849, 0.887537083981715, 1.1124629160182848),
        (0.25, 0.27632639016823696, 0.7236736098317631, 1.276326390168237),
        (0.49, 0.511668261188523, 0.4883317388114769, 1.511668261188523),
        (0.5, 0.5204998778130465, 0.4795001221869535, 1.5204998778130465),
        (0.51, 0.5292436198411704, 0.4707563801588296, 1.5292436198411705),
        (0.7, 0.6778011938374184, 0.32219880616258156, 1.6778011938374184),
        (0.9, 0.7969082124228322, 0.20309178757716786, 1.7969082124228322),
        (1.0, 0.8427007929497149, 0.15729920705028513, 1.8427007929497148),
        (1.2, 0.9103139782296353, 0.08968602177036464, 1.9103139782296354),
        (1.5, 0.9661051464753108, 0.033894853524689274, 1.9661051464753108),
        (1.541457, 0.9707387871198933, 0.029261212880106708, 1.9707387871198934),
        (1.9, 0.9927904292352575, 0.0072095707647425325, 1.9927904292352574),
        (2.396, 0.9992971261706295, 0.00070287382937053, 1.9992971261706294),
        (2.9, 0.9999589021219005, 4.109787809945886e-05, 1.9999589021219006),
        (3.5, 0.9999992569016276, 7.430983723414128e-07, 1.9999992569016276),
        (4.4, 0.999999999510829, 4.891710270605872e-10, 1.999999999510829),
        (5.2, 0.9999999999998075, 1.9249061099972322e-13, 1.9999999999998075),
        (5.9, 0.9999999999999999, 7.190409783550478e-17, 2.0),
        (7.7, 1.0, 1.2942740067717136e-27, 2.0),
        (10.0, 1.0, 2.088487583762545e-45, 2.0),
        (15.0, 1.0, 7.212994172451207e-100, 2.0),
        (20.0, 1.0, 5.395865611607901e-176, 2.0),
        (26.0, 1.0, 5.663192408856143e-296, 2.0),
    ];
    for &level in Level::available() {
        for (x, erf, erfc, erfc_negative) in table {
            for (prim, x, exact) in [
                (Unary::Erf, x, erf),
                (Unary::Erf, -x, -erf),
                (Unary::Erfc, x, erfc),
                (Unary::Erfc, -x, erfc_negative),
            ] {
                let mut out = [0f64];
                let function = prim.function(DType::F64).expect("there is one");
                function(level, cast_slice_mut(&mut out), cast_slice(&[x]));
                let ulp = ulp_f64(out[0], exact);
                assert!(ulp <= 4.0, "{prim:?} {level} {x}: {ulp} ulp");
            }
        }
    }
}

fn f64_of(prim: Unary, level: Level, x: f64) -> f64 {
    let mut out = [0f64];
    let function = prim.function(DType::F64).expect("there is one");
    function(level, cast_slice_mut(&mut out), cast_slice(&[x]));
    out[0]
}

/// Values computed with fifty digits; the first lie where the result is about to become 0.
#[test]
fn gelu_of_f64_agrees_with_exact_values() {
    let table: [(f64, f64, f64); 15] = [
        (-38.3, -1.17355e-319, -0.0),
        (-37.25, -1.9734635705229075e-302, -0.0),
        (-20.125, -4.485582034599565e-89, -5.8471646034871665e-266),
        (-9.7, -1.4622683737458985e-21, -9.583371189369027e-35),
        (-5.3, -3.068771041181235e-07, -2.7393488128634274e-08),
        (-3.1, -0.0029995699609769054, -0.002626610230549775),
        (-1.5, -0.1002108019032871, -0.10042842301976708),
        (-1.3, -0.12584062996129342, -0.1260709876826906),
        (-0.7, -0.1693745565561511, -0.16942986529488324),
        (-0.001, -0.000499601057786089, -0.000499601057786418),
        (0.001, 0.000500398942213911, 0.000500398942213582),
        (0.9, 0.7343458871879165, 0.7342284887097206),
        (1.4, 1.2869406770727205, 1.2867080671611943),
        (2.2, 2.1694124154703034, 2.1696785270380117),
        (6.5, 6.49999999973896, 6.499999999999372),
    ];
    for &level in Level::available() {
        for (x, gelu, by_tanh) in table {
            for (prim, exact) in [(Unary::Gelu, gelu), (Unary::GeluTanh, by_tanh)] {
                let ulp = ulp_f64(f64_of(prim, level, x), exact);
                assert!(ulp <= 6.0, "{prim:?} {level} {x}: {ulp} ulp");
            }
        }
    }
}

/// Values computed with fifty digits. Below 0 the error is one of the terms that cancel near a zero.
#[test]
fn gamma_functions_of_f64_agree_with_exact_values() {
    let table: [(f64, f64, f64); 28] = [
        (-20.4, -42.35279092555145, 4.060609840029619),
        (-9.999, -8.194303944153827, -997.6450527120501),
        (-3.7, -1.3797399049658245, -0.8450768588704194),
        (-2.5, -0.056243716497674054, 1.103156640645243),
        (-2.4570247382208006, 5.619192358950097e-17, 1.5156034480216576),
        (-1.5, 0.860047015376481, 0.7031566406452432),
        (-0.504083008264455, 1.2654376221108656, 4.042965717222496e-15),
        (-0.3, 1.4648400508576025, 2.113309779635399),
        (-1e-5, 11.512931237209125, 99999.42276788563),
        (1e-5, 11.512919692895826, -100000.57719921567),
        (0.2, 1.5240638224307845, -5.289039896592188),
        (0.7, 0.26086724653166654, -1.2200235536979347),
        (0.9999, 5.7729791561193866e-05, -0.5773801703298691),
        (1.0001, -5.771334222047127e-05, -0.5770511835143348),
        (1.25, -0.09827183642181316, -0.22745353337626542),
        (1.4616321449683622, -0.12148629053584961, -9.241265521729427e-17),
        (1.5, -0.12078223763524522, 0.03648997397857652),
        (1.9999, -4.227520877215346e-05, 0.42271983967113097),
        (2.0001, 4.2281658112919945e-05, 0.4228488264846654),
        (2.7, 0.4348205536551047, 0.7967831689911411),
        (3.3, 0.9870985778947344, 1.0348224890596216),
        (5.5, 3.9578139676187165, 1.6110931485817512),
        (7.9, 8.32426586800881, 2.002238487563571),
        (8.1, 8.72738826343204, 2.0288674570805814),
        (17.25, 31.374622313677687, 2.818546676986557),
        (300.5, 1412.0535420412662, 5.703782937618263),
        (12345.678, 103959.91990554606, 9.421020820741761),
        (1e15, 3.3538776394910668e+16, 34.538776394910684),
    ];
    for &level in Level::available() {
        for (x, lgamma, digamma) in table {
            for (prim, exact) in [(Unary::Lgamma, lgamma), (Unary::Digamma, digamma)] {
                let got = f64_of(prim, level, x);
                let (ulp, off) = (ulp_f64(got, exact), (got - exact).abs());
                assert!(ulp <= 8.0 || x < 0.0 && off < 4e-15, "{prim:?} {level} {x}: {got:e}");
            }
        }
    }
}

/// Values computed with fifty digits.
#[test]
fn slopes_of_digamma_agree_with_exact_values() {
    let table: [(u32, f64, f64); 20] = [
        (1, -20.4, 10.86372849226865),
        (1, -3.7, 14.84242186412428),
        (1, -0.3, 13.945160267805722),
        (1, 1e-05, 10000000001.644909),
        (1, 0.2, 26.267377205423777),
        (1, 1.0, 1.6449340668482264),
        (1, 2.5, 0.49035775610023485),
        (1, 9.5, 0.11099728846909904),
        (1, 123.25, 0.008146594456080266),
        (1, 1000000000000000.0, 1.0000000000000005e-15),
        (2, 0.001, -2000000002.3976321),
        (2, 0.7, -6.4349928741909235),
        (2, 3.25, -0.12815694713911513),
        (2, 40.5, -0.0006249023793292329),
        (3, 1.5, 1.4090910340024372),
        (5, 0.75, 678.7533428745797),
        (10, 2.25, -494.00350687254684),
        (30, 4.5, -1496027027094.6128),
        (60, 12.5, -1029600030941724.4),
        (170, 20.25, -2.898789123368964e+83),
    ];
    let of = |level, order: f64, x: f64| {
        let (mut out, function) = ([0.0], Binary::Polygamma.function(DType::F64).expect("f64"));
        let (order, x) = ([order], [x]);
        let operands = (bytemuck::cast_slice(&order), bytemuck::cast_slice(&x));
        function(level, bytemuck::cast_slice_mut(&mut out), operands.0, operands.1);
        out[0]
    };
    for &level in Level::available() {
        for (order, x, exact) in table {
            let got = of(level, f64::from(order), x);
            // The factorial of a high order is off by as many units as it has digits.
            let ulps = 16.0 + 4.0 * f64::from(order);
            assert!(ulp_f64(got, exact) <= ulps, "{order} {level} {x}: {got:e}, not {exact:e}");
        }
        for (order, i) in (1..=6).flat_map(|order| (1..200).map(move |i| (order, i))) {
            let x = 0.13 * f64::from(i);
            let (got, exact) = (of(level, f64::from(order), x), polygamma(order, x));
            assert!((got - exact).abs() <= 1e-13 * exact.abs(), "{order} {level} {x}: {got:e}");
        }
        for (order, x) in [(0.0, 1.0), (1.5, 1.0), (171.0, 1.0), (2.0, -0.5), (1.0, -3.0)] {
            assert!(of(level, order, x).is_nan(), "{order} {x}");
        }
        let ends =
            [(1.0, 0.0, f64::INFINITY), (2.0, 0.0, f64::NEG_INFINITY), (1.0, f64::INFINITY, 0.0)];
        for (order, x, end) in ends {
            assert_eq!(of(level, order, x), end, "{order} {x}");
        }
    }
}
