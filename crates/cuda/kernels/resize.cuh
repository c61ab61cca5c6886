// Images of another size, an element of the result a thread: crates/cuda/src/emit/resize.rs has the words. Images end in their channels.
//
//   BETWEEN    what a pixel that is made is: 0 the nearest, 1 between two, 2 between two from corner to corner
//
// Words: elements of the result, channels, the lengths of the image, those of what is made of it, where the result goes, and where the
// other image lies with its steps along images, depth, height, width and channels.

struct Between {
  i64 low, high;
  f64 share;
};

// The two pixels of the image that a made pixel lies between, and how far it is from the first to the second.
TN_FN Between place(i64 from, i64 to, i64 at) {
  const f64 ratio = (f64)from / (f64)to;
  if (BETWEEN == 0) {
    const i64 near = (i64)(((f64)at + 0.5) * ratio), found = near < from - 1 ? near : from - 1;
    return {found, found, 0.0};
  }
  f64 exact = ((f64)at + 0.5) * ratio - 0.5;
  if (BETWEEN == 2) exact = to == 1 ? 0.0 : (f64)at * (f64)(from - 1) / (f64)(to - 1);
  const f64 last = (f64)(from - 1);
  exact = exact < 0.0 ? 0.0 : exact > last ? last : exact;
  const i64 low = (i64)exact;
  return {low, low + 1 < from - 1 ? low + 1 : from - 1, exact - (f64)low};
}

// How much of a pixel of the image is in one of the made image.
TN_FN f64 share_of(i64 from, i64 to, i64 at, i64 of) {
  const Between found = place(from, to, at);
  return (found.low == of ? 1.0 - found.share : 0.0) + (found.high == of ? found.share : 0.0);
}

// The first made pixel whose second pixel is at least `of`, or whose first one is beyond it.
TN_FN i64 reached(i64 from, i64 to, i64 of, bool beyond) {
  i64 low = 0, high = to;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    const Between found = place(from, to, middle);
    if (beyond ? found.low > of : found.high >= of) high = middle;
    else low = middle + 1;
  }
  return low;
}

TN_FN C pixel(const P& p, u64 image, i64 z, i64 y, i64 x, u64 channel) {
  return load_s(((const S*)p.w[9])[(i64)image * (i64)p.w[10] + z * (i64)p.w[11] + y * (i64)p.w[12] + x * (i64)p.w[13] + (i64)channel * (i64)p.w[14]]);
}

TN_FN void resized(const P& p, u64 t) {
  const u64 channel = t % p.w[1];
  u64 rest = t / p.w[1];
  const i64 column = (i64)(rest % p.w[7]);
  rest /= p.w[7];
  const i64 row = (i64)(rest % p.w[6]);
  rest /= p.w[6];
  const i64 slab = (i64)(rest % p.w[5]);
  const Between zs = place((i64)p.w[2], (i64)p.w[5], slab), ys = place((i64)p.w[3], (i64)p.w[6], row), xs = place((i64)p.w[4], (i64)p.w[7], column);
  C sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const f64 of_z = i & 4 ? zs.share : 1.0 - zs.share, of_y = i & 2 ? ys.share : 1.0 - ys.share, of_x = i & 1 ? xs.share : 1.0 - xs.share;
    const f64 share = of_z * of_y * of_x;
    if (share == 0.0) continue;
    const C x = pixel(p, rest / p.w[5], i & 4 ? zs.high : zs.low, i & 2 ? ys.high : ys.low, i & 1 ? xs.high : xs.low, channel);
    sum = tn::fma(x, (C)share, sum);
  }
  ((S*)p.w[8])[t] = store_s(sum);
}

// Each pixel looks at those it may be in, in order.
TN_FN void resized_back(const P& p, u64 t) {
  const u64 channel = t % p.w[1];
  u64 rest = t / p.w[1];
  const i64 x = (i64)(rest % p.w[4]);
  rest /= p.w[4];
  const i64 y = (i64)(rest % p.w[3]);
  rest /= p.w[3];
  const i64 z = (i64)(rest % p.w[2]);
  const i64 end_z = reached((i64)p.w[2], (i64)p.w[5], z, true), end_y = reached((i64)p.w[3], (i64)p.w[6], y, true), end_x = reached((i64)p.w[4], (i64)p.w[7], x, true);
  const i64 first_y = reached((i64)p.w[3], (i64)p.w[6], y, false), first_x = reached((i64)p.w[4], (i64)p.w[7], x, false);
  C sum = 0;
  for (i64 slab = reached((i64)p.w[2], (i64)p.w[5], z, false); slab < end_z; slab++)
    for (i64 row = first_y; row < end_y; row++) {
      const f64 outer = share_of((i64)p.w[2], (i64)p.w[5], slab, z) * share_of((i64)p.w[3], (i64)p.w[6], row, y);
      for (i64 column = first_x; column < end_x; column++) {
        const f64 share = outer * share_of((i64)p.w[4], (i64)p.w[7], column, x);
        sum = tn::fma(pixel(p, rest / p.w[2], slab, row, column, channel), (C)share, sum);
      }
    }
  ((S*)p.w[8])[t] = store_s(sum);
}
