'use strict';
(() => {
  const $ = id => document.getElementById(id);
  const make = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const fail = what => {
    $('failed').hidden = false;
    $('failed').textContent = 'This page could not be drawn: ' + what;
  };
  window.addEventListener('error', event => fail(event.message));
  const data = JSON.parse($('data').textContent);

  // Figures as everywhere else: two places, units of 1024.
  const bytes = n => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
    let unit = 0;
    let value = n;
    while (value >= 1024 && unit < 6) { value /= 1024; unit += 1; }
    if (unit === 0) return n + ' B';
    if (value.toFixed(2) === '1024.00' && unit < 6) { value = 1; unit += 1; }
    return value.toFixed(2) + ' ' + units[unit];
  };
  const COLOURS = ['#8d6e63', '#3f6fb5', '#d9822b', '#8e5bb5', '#4a9d6a', '#9aa3ad', '#2aa6a6', '#c2557a', '#6d7f2f', '#555f6d'];
  const when = (picture, at) => picture.along === 'steps' ? 'step ' + at : (at / 1e6).toFixed(3) + ' ms';

  // The top of the page.
  $('title').textContent = data.title;
  if (data.failed) { $('failed').hidden = false; $('failed').textContent = data.failed; }
  const fact = (name, value) => {
    const box = make('div');
    box.append(make('dt', name), make('dd', value));
    $('facts').append(box);
  };
  if (data.predicted !== null) fact('peak, predicted', bytes(data.predicted));
  if (data.measured !== null) fact('peak, measured', bytes(data.measured));
  if (data.predicted !== null && data.measured !== null) {
    fact('difference', data.measured === data.predicted ? 'none' : (data.measured - data.predicted) + ' bytes');
  }
  if (data.budget !== null) fact('budget', bytes(data.budget));
  for (const [name, value] of data.facts) fact(name, value);

  // Pictures, their columns as typed arrays.
  const summed = list => { let sum = 0; return Float64Array.from(list, n => sum += n); };
  const pictures = data.pictures.map(p => ({
    ...p,
    from: summed(p.from), long: Float64Array.from(p.long), address: Float64Array.from(p.address),
    bytes: Float64Array.from(p.bytes), owner: Uint32Array.from(p.owner),
    at: summed(p.at), in_use: Float64Array.from(p.in_use),
    top: p.address.reduce((top, low, i) => Math.max(top, low + p.bytes[i]), p.peak.bytes),
  }));
  let now = pictures[0] || null;
  const shown = new Set(data.kinds.map((_, i) => i));
  let words = '';
  let view = { x0: 0, x1: 1, y0: 0, y1: 1 };
  let picked = -1;
  let matching = null;

  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const sized = canvas => {
    const scale = window.devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect();
    canvas.width = Math.max(1, Math.round(box.width * scale));
    canvas.height = Math.max(1, Math.round(box.height * scale));
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    return [pen, box.width, box.height];
  };
  // Which owners are shown: asked once for each change of the filters, not for each buffer.
  const match = () => {
    matching = now.owners.map(([kind, what, line, layer]) =>
      shown.has(kind) && (!words || (what + ' ' + line + ' ' + layer).toLowerCase().includes(words)));
  };
  const LEFT = 66;
  const BELOW = 18;
  const place = width => at => LEFT + (at - view.x0) / (view.x1 - view.x0) * (width - LEFT);

  const drawMap = () => {
    const [pen, width, height] = sized($('map'));
    const x = place(width);
    const y = low => (height - BELOW) * (1 - (low - view.y0) / (view.y1 - view.y0));
    pen.font = '11px system-ui, sans-serif';
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT, height - BELOW);
    pen.clip();
    const edge = css('--paper');
    let drawn = 0;
    for (let i = 0; i < now.from.length; i += 1) {
      const owner = now.owner[i];
      if (!matching[owner]) continue;
      const from = now.from[i], to = from + now.long[i], low = now.address[i], high = low + now.bytes[i];
      if (to < view.x0 || from > view.x1 || high < view.y0 || low > view.y1) continue;
      const left = x(from), right = x(to), up = y(high), down = y(low);
      pen.fillStyle = COLOURS[now.owners[owner][0]];
      pen.fillRect(left, up, Math.max(right - left, 1), Math.max(down - up, 1));
      if (right - left > 5 && down - up > 5) {
        pen.strokeStyle = edge;
        pen.strokeRect(left, up, right - left, down - up);
        if (right - left > 60 && down - up > 13) {
          pen.fillStyle = '#fff';
          pen.fillText(now.owners[owner][1], Math.max(left, LEFT) + 4, up + 12, right - left - 8);
        }
      }
      drawn += 1;
    }
    const mark = (colour, figure, text) => {
      if (figure > view.y1 || figure < view.y0) return;
      pen.strokeStyle = pen.fillStyle = colour;
      pen.setLineDash([6, 4]);
      pen.beginPath(); pen.moveTo(LEFT, y(figure)); pen.lineTo(width, y(figure)); pen.stroke();
      pen.setLineDash([]);
      pen.textAlign = 'right';
      pen.fillText(text, width - 4, Math.max(y(figure) - 4, 11));
      pen.textAlign = 'left';
    };
    mark(css('--peak'), now.peak.bytes, 'peak ' + bytes(now.peak.bytes));
    if (data.budget !== null) mark(css('--budget'), data.budget, 'budget ' + bytes(data.budget));
    pen.strokeStyle = css('--peak');
    const at = x(now.peak.at + (now.along === 'steps' ? 0.5 : 0));
    pen.setLineDash([2, 3]);
    pen.beginPath(); pen.moveTo(at, 0); pen.lineTo(at, height); pen.stroke();
    pen.setLineDash([]);
    if (picked >= 0) {
      pen.strokeStyle = css('--ink');
      pen.lineWidth = 2;
      const up = y(now.address[picked] + now.bytes[picked]);
      pen.strokeRect(x(now.from[picked]), up, Math.max(x(now.from[picked] + now.long[picked]) - x(now.from[picked]), 2), Math.max(y(now.address[picked]) - up, 2));
    }
    pen.restore();
    pen.fillStyle = css('--quiet');
    for (let i = 0; i <= 4; i += 1) {
      const low = view.y0 + (view.y1 - view.y0) * i / 4;
      pen.fillText(bytes(Math.round(low)), 2, Math.min(Math.max(y(low) + 4, 10), height - BELOW));
      const time = view.x0 + (view.x1 - view.x0) * i / 4;
      pen.textAlign = i === 0 ? 'left' : i === 4 ? 'right' : 'center';
      pen.fillText(when(now, Math.round(time)), x(time), height - 4);
      pen.textAlign = 'left';
    }
    return drawn;
  };
  const drawCurve = () => {
    const [pen, width, height] = sized($('curve'));
    const x = place(width);
    const top = Math.max(now.top, data.budget || 0) * 1.08 || 1;
    const y = n => height - n / top * (height - 4);
    pen.beginPath();
    pen.moveTo(LEFT, height);
    let last = 0;
    for (let i = 0; i < now.at.length; i += 1) {
      const next = i + 1 < now.at.length ? now.at[i + 1] : now.length;
      last = now.in_use[i];
      if (next < view.x0 || now.at[i] > view.x1) continue;
      const left = Math.max(x(now.at[i]), LEFT), right = Math.min(x(next), width);
      pen.lineTo(left, y(last));
      pen.lineTo(right, y(last));
    }
    pen.lineTo(width, height);
    pen.fillStyle = css('--fill');
    pen.fill();
    pen.font = '11px system-ui, sans-serif';
    const mark = (colour, figure) => {
      pen.strokeStyle = colour;
      pen.setLineDash([6, 4]);
      pen.beginPath(); pen.moveTo(LEFT, y(figure)); pen.lineTo(width, y(figure)); pen.stroke();
      pen.setLineDash([]);
    };
    mark(css('--peak'), now.peak.bytes);
    if (data.budget !== null) mark(css('--budget'), data.budget);
    pen.fillStyle = css('--quiet');
    pen.fillText(bytes(now.peak.bytes), 2, Math.max(y(now.peak.bytes) + 4, 10));
    pen.fillText('in use', 2, height - 4);
  };
  let drawn = 0;
  const draw = () => {
    if (!now) return;
    drawCurve();
    drawn = drawMap();
    const lost = now.lost ? '; ' + now.lost + ' more are not in this picture' : '';
    $('note').textContent = drawn + ' of ' + now.from.length + ' buffers' + lost
      + '. Wheel or + and \u2212 zoom, dragging or arrows move, n and b go from buffer to buffer.';
  };
  const clamp = () => {
    const span = Math.min(view.x1 - view.x0, now.length), tall = Math.min(view.y1 - view.y0, now.top || 1);
    view.x0 = Math.min(Math.max(view.x0, 0), now.length - span); view.x1 = view.x0 + span;
    view.y0 = Math.min(Math.max(view.y0, 0), (now.top || 1) - tall); view.y1 = view.y0 + tall;
  };
  const zoom = (by, cx, cy) => {
    const sx = view.x1 - view.x0, sy = view.y1 - view.y0;
    const fx = cx === undefined ? 0.5 : cx, fy = cy === undefined ? 0.5 : cy;
    const nx = Math.max(sx / by, now.along === 'steps' ? 1 : 100), ny = Math.max(sy / by, 64);
    view.x0 += (sx - nx) * fx; view.x1 = view.x0 + nx;
    view.y0 += (sy - ny) * fy; view.y1 = view.y0 + ny;
    clamp(); draw();
  };
  const whole = () => { view = { x0: 0, x1: now.length, y0: 0, y1: now.top || 1 }; draw(); };
  const toPeak = () => {
    const span = Math.max(now.length / 20, now.along === 'steps' ? 8 : 1000);
    view.x0 = now.peak.at - span / 2; view.x1 = view.x0 + span; view.y0 = 0; view.y1 = now.top || 1;
    clamp(); draw();
  };
  const move = (dx, dy) => {
    const sx = view.x1 - view.x0, sy = view.y1 - view.y0;
    view.x0 += dx * sx; view.x1 += dx * sx; view.y0 += dy * sy; view.y1 += dy * sy;
    clamp(); draw();
  };

  // What is under the pointer, or picked by the keyboard.
  const hit = (px, py) => {
    const box = $('map').getBoundingClientRect();
    const at = view.x0 + (px - LEFT) / (box.width - LEFT) * (view.x1 - view.x0);
    const low = view.y0 + (1 - py / (box.height - BELOW)) * (view.y1 - view.y0);
    // Within a pixel: short spans are drawn a pixel wide.
    const near = (view.x1 - view.x0) / (box.width - LEFT);
    for (let i = now.from.length - 1; i >= 0; i -= 1) {
      const from = now.from[i];
      if (from <= at && at < Math.max(from + now.long[i], from + near)
        && now.address[i] <= low && low < now.address[i] + now.bytes[i] && matching[now.owner[i]]) return i;
    }
    return -1;
  };
  const tell = (i, px, py) => {
    const tip = $('tip');
    tip.hidden = i < 0;
    if (i < 0) return;
    const [kind, what, line, layer] = now.owners[now.owner[i]];
    const from = now.from[i], to = from + now.long[i];
    tip.replaceChildren(make('b', data.kinds[kind] + ' ' + what), make('div', bytes(now.bytes[i]) + ' (' + now.bytes[i] + ' bytes) at ' + now.address[i]),
      make('div', now.along === 'steps' ? 'steps ' + from + ' to ' + (to - 1) : 'from ' + when(now, from) + ', for ' + (now.long[i] / 1e6).toFixed(3) + ' ms'),
      make('div', line));
    if (layer) tip.append(make('div', 'layer ' + layer));
    const box = $('map').getBoundingClientRect(), outer = tip.parentElement.getBoundingClientRect();
    const left = Math.min(px + 14, box.width - tip.offsetWidth - 4);
    tip.style.left = Math.max(left, 0) + 'px';
    const above = box.top - outer.top;
    const top = py + 14 + tip.offsetHeight > box.height ? py - tip.offsetHeight - 14 : py + 14;
    tip.style.top = above + Math.max(top, 0) + 'px';
  };
  const next = by => {
    let i = picked;
    for (let n = 0; n < now.from.length; n += 1) {
      i = (i + by + now.from.length) % now.from.length;
      if (matching[now.owner[i]]) break;
    }
    if (!matching[now.owner[i]]) return;
    picked = i;
    const from = now.from[i], to = from + now.long[i];
    if (from < view.x0 || to > view.x1) {
      const span = Math.max(view.x1 - view.x0, (to - from) * 1.2);
      view.x0 = (from + to) / 2 - span / 2; view.x1 = view.x0 + span;
    }
    if (now.address[i] < view.y0 || now.address[i] + now.bytes[i] > view.y1) { view.y0 = 0; view.y1 = now.top; }
    clamp(); draw();
    const box = $('map').getBoundingClientRect();
    tell(i, LEFT + (Math.max(from, view.x0) - view.x0) / (view.x1 - view.x0) * (box.width - LEFT), box.height / 3);
  };
  const map = $('map');
  let drag = null;
  map.addEventListener('mousemove', event => {
    const box = map.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    if (drag) {
      move((drag.px - px) / (box.width - LEFT), (py - drag.py) / (box.height - BELOW));
      drag = { px, py };
      return;
    }
    tell(hit(px, py), px, py);
  });
  map.addEventListener('mouseleave', () => { $('tip').hidden = true; });
  map.addEventListener('mousedown', event => {
    const box = map.getBoundingClientRect();
    drag = { px: event.clientX - box.left, py: event.clientY - box.top };
  });
  window.addEventListener('mouseup', () => { drag = null; });
  map.addEventListener('wheel', event => {
    event.preventDefault();
    const box = map.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.3 : 1 / 1.3, Math.max(0, (event.clientX - box.left - LEFT) / (box.width - LEFT)), 1 - (event.clientY - box.top) / (box.height - BELOW));
  }, { passive: false });
  const KEYS = {
    '+': () => zoom(1.5), '=': () => zoom(1.5), '-': () => zoom(1 / 1.5), '0': whole, 'p': toPeak,
    ArrowLeft: () => move(-0.2, 0), ArrowRight: () => move(0.2, 0), ArrowUp: () => move(0, 0.2), ArrowDown: () => move(0, -0.2),
    'n': () => next(1), 'b': () => next(-1), Escape: () => { picked = -1; $('tip').hidden = true; draw(); },
  };
  map.addEventListener('keydown', event => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  $('in').onclick = () => zoom(1.5);
  $('out').onclick = () => zoom(1 / 1.5);
  $('whole').onclick = () => whole();
  $('topeak').onclick = () => toPeak();
  const refilter = () => { picked = -1; $('tip').hidden = true; match(); draw(); };
  $('search').addEventListener('input', event => { words = event.target.value.toLowerCase(); refilter(); });

  const choose = picture => {
    now = picture;
    picked = -1;
    $('tip').hidden = true;
    for (const button of $('pictures').children) button.setAttribute('aria-pressed', button.value === String(pictures.indexOf(now)));
    match();
    const sums = new Map();
    for (const [kind] of now.owners) sums.set(kind, 0);
    $('kinds').replaceChildren(...[...sums.keys()].sort((a, b) => a - b).map(kind => {
      const label = make('label'), box = make('input'), colour = make('i');
      box.type = 'checkbox';
      box.checked = shown.has(kind);
      box.value = data.kinds[kind];
      box.addEventListener('change', () => { if (box.checked) shown.add(kind); else shown.delete(kind); refilter(); });
      colour.style.background = COLOURS[kind];
      label.append(box, colour, make('span', data.kinds[kind]));
      return label;
    }));
    whole();
  };
  pictures.forEach((picture, i) => {
    const button = make('button', picture.title);
    button.value = String(i);
    button.onclick = () => choose(picture);
    $('pictures').append(button);
  });
  if (now) choose(now); else $('memory').hidden = true;
  new ResizeObserver(() => draw()).observe(map);
  window.addEventListener('beforeprint', draw);
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  window.matchMedia('print').addEventListener('change', draw);

  // Tables.
  const table = (head, rows) => {
    const made = make('table'), top = make('tr');
    for (const [name, className] of head) top.append(make('th', name, className));
    const thead = make('thead'), body = make('tbody');
    thead.append(top);
    for (const cells of rows) {
      const row = make('tr', undefined, cells.className);
      cells.forEach((cell, i) => row.append(make('td', cell, head[i][1])));
      body.append(row);
    }
    made.append(thead, body);
    return made;
  };
  const told = data.explained;
  if (told) {
    $('explained').hidden = false;
    const parts = [['inputs', told.inputs], ['arena', told.arena], ['small results', told.small_results], ['gaps at the peak', told.gaps]];
    if (told.spilled) parts.push(['spilled', told.spilled]);
    for (const [name, figure] of parts) fact(name, bytes(figure));
    if (told.fitted) fact('how it fits', told.fitted);
    for (const segment of told.segments) fact('in pieces', segment);
    if (told.is_bound) fact('peak', 'a bound: data decide');
    $('suggestions').append(told.suggestions.length
      ? table([['saves', 'n'], ['line'], ['what to do']], told.suggestions.map(([saves, line, what]) => [bytes(saves), line, what]))
      : make('p', 'Nothing that this page knows of.', 'quiet'));
    const shares = all => {
      const rows = all.map(([name, count, sum]) => [bytes(sum), name || '(no layer)', count]);
      if (told.gaps) rows.push([bytes(told.gaps), '(gaps)', '']);
      return table([['bytes', 'n'], ['what'], ['buffers', 'n']], rows);
    };
    $('bykind').append(shares(told.by_kind));
    $('bylayer').append(shares(told.by_layer));
    $('holders').append(table([['bytes', 'n'], ['kind', 'w'], ['what'], ['buffers', 'n far'], ['line']],
      told.holders.map(([sum, kind, what, count, line]) => [bytes(sum), kind, what, count, line])));
    const FEW = 400;
    let all = false;
    const steps = () => {
      const find = $('find').value.toLowerCase();
      const rows = [];
      told.steps.forEach(([op, fused, memory, sum, live, line, layer, refused], i) => {
        const cells = [i, fused ? op + ' ' + fused : op, memory, bytes(sum), bytes(live), line || '', layer || '', refused.join('; ')];
        if (find && !cells.join(' ').toLowerCase().includes(find)) return;
        if (i === told.peak_step) cells.className = 'peak';
        rows.push(cells);
      });
      const cut = all ? rows : rows.slice(0, FEW);
      $('more').hidden = cut.length === rows.length;
      $('more').textContent = 'show all ' + rows.length;
      $('steps').replaceChildren(table([['step', 'n'], ['op', 'w'], ['memory', 'w'], ['bytes', 'n'], ['live', 'n'], ['line'], ['layer', 'far'], ['why not in place', 'far']], cut));
    };
    $('find').addEventListener('input', steps);
    $('more').onclick = () => { all = true; steps(); };
    steps();
  }

  // What less memory costs: a curve of seconds over bytes.
  if (data.prices.length > 1) {
    $('prices').hidden = false;
    const NS = 'http://www.w3.org/2000/svg', W = 640, H = 240, L = 70, B = 34;
    const svg = document.createElementNS(NS, 'svg');
    svg.setAttribute('viewBox', `0 0 ${W} ${H}`);
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', 'Seconds over bytes');
    const most = Math.max(...data.prices.map(p => p[0])), long = Math.max(...data.prices.map(p => p[1]));
    const x = n => L + n / most * (W - L - 12), y = s => H - B - s / long * (H - B - 14);
    const put = (name, set, text) => {
      const made = document.createElementNS(NS, name);
      for (const key in set) made.setAttribute(key, set[key]);
      if (text) made.textContent = text;
      svg.append(made);
      return made;
    };
    put('line', { x1: L, y1: H - B, x2: W, y2: H - B, stroke: 'var(--line)' });
    put('line', { x1: L, y1: 8, x2: L, y2: H - B, stroke: 'var(--line)' });
    put('polyline', { points: data.prices.map(p => x(p[0]) + ',' + y(p[1])).join(' '), fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2 });
    for (const [peak, seconds, text] of data.prices) {
      const dot = put('circle', { cx: x(peak), cy: y(seconds), r: 4, fill: 'var(--accent)' });
      const title = document.createElementNS(NS, 'title');
      title.textContent = bytes(peak) + ', ' + (seconds * 1e3).toFixed(2) + ' ms: ' + text;
      dot.append(title);
    }
    if (data.budget !== null && data.budget <= most) put('line', { x1: x(data.budget), x2: x(data.budget), y1: 8, y2: H - B, stroke: 'var(--budget)', 'stroke-dasharray': '5 4' });
    put('text', { x: L, y: H - 18 }, '0 B');
    put('text', { x: W - 8, y: H - 18, 'text-anchor': 'end' }, bytes(most));
    put('text', { x: W / 2, y: H - 4, 'text-anchor': 'middle' }, 'peak');
    put('text', { x: 4, y: 18 }, (long * 1e3).toFixed(2) + ' ms');
    put('text', { x: 4, y: H - B }, 'expected');
    $('price').append(svg, table([['peak', 'n'], ['expected', 'n'], ['how']], data.prices.map(([peak, s, text]) => [bytes(peak), (s * 1e3).toFixed(2) + ' ms', text])));
  }
  // Once more, as wide as the page has become with everything on it.
  draw();
})();
