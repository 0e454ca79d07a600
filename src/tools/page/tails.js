// SPDX-License-Identifier: BSD-2-Clause
// Tails: how long single stretches took, not how long they took together.

const tailView = {kind: "ready"};

// Stretches that end in the range, of the threads that are selected: durations by kind of stretch.
function durationsOf(model) {
    const range = rangeOf(model), groups = new Map();
    const label = model.states.map(state => state.kind === "r" ? "running" : state.kind === "q" ? "ready"
        : state.kind === "?" ? null : stateLabel(state));

    for (const thread of selectedThreads(model)) {
        const end = model.first[thread.index + 1];

        for (let i = firstAfter(model, thread.index, range.from); i < end; i++) {
            const until = model.start[i] + model.ns[i];

            if (until > range.to)
                break;
            const name = label[model.state[i]];
            if (!name)
                continue;
            if (!groups.has(name))
                groups.set(name, {name, state: model.state[i], ns: [], end: []});
            groups.get(name).ns.push(model.ns[i]);
            groups.get(name).end.push(until);
        }
    }
    for (const group of groups.values())
        group.sorted = Float64Array.from(group.ns).sort();
    return [...groups.values()];
}

function percentile(sorted, part) {
    return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)];
}

const HEAT_COLUMNS = 100, HEAT_BITS = 40;

function heatMap(model, group) {
    const range = rangeOf(model), cells = new Float64Array(HEAT_COLUMNS * HEAT_BITS);
    const low = Math.floor(Math.log2(Math.max(1, group.sorted[0])));
    const high = Math.floor(Math.log2(Math.max(1, group.sorted[group.sorted.length - 1])));
    const canvas = element("canvas", {role: "img",
        "aria-label": `When stretches of ${group.name} ended (across) and how long they took (upward)`});
    let most = 0;

    group.ns.forEach((ns, i) => {
        const column = Math.min(HEAT_COLUMNS - 1,
            Math.floor((group.end[i] - range.from) / (range.to - range.from || 1) * HEAT_COLUMNS));
        const bit = Math.min(HEAT_BITS - 1, Math.floor(Math.log2(Math.max(1, ns))));

        most = Math.max(most, ++cells[bit * HEAT_COLUMNS + column]);
    });
    const draw = () => {
        const width = Math.min(900, (canvas.parentNode && canvas.parentNode.clientWidth) || 800), label = 70;
        const rows = high - low + 1, height = rows * ROW, pen = sizeCanvas(canvas, width, height), colours = roleColours();

        pen.font = "12px system-ui, sans-serif";
        pen.textBaseline = "middle";
        for (let bit = low; bit <= high; bit++) {
            const y = (high - bit) * ROW;

            pen.globalAlpha = 1;
            pen.fillStyle = colours.muted;
            pen.fillText("≥ " + formatTime(2 ** bit), 0, y + ROW / 2);
            pen.fillStyle = colours.ready;
            for (let column = 0; column < HEAT_COLUMNS; column++) {
                const count = cells[Math.min(bit, HEAT_BITS - 1) * HEAT_COLUMNS + column];

                if (!count)
                    continue;
                pen.globalAlpha = 0.15 + 0.85 * Math.log1p(count) / Math.log1p(most);
                pen.fillRect(label + column * (width - label) / HEAT_COLUMNS, y + 1, (width - label) / HEAT_COLUMNS, ROW - 2);
            }
        }
        pen.globalAlpha = 1;
    };

    requestAnimationFrame(draw);
    return canvas;
}

function histogramTable(group) {
    const bits = new Map();

    for (const ns of group.sorted) {
        const bit = Math.floor(Math.log2(Math.max(1, ns)));

        bits.set(bit, (bits.get(bit) || 0) + 1);
    }
    return makeTable({
        rows: [...bits].map(([bit, count]) => ({bit, count})), sort: 0, down: false,
        columns: [
            {title: "From", value: row => 2 ** row.bit, number: true, show: row => formatTime(2 ** row.bit)},
            {title: "Below", value: row => 2 ** (row.bit + 1), number: true, show: row => formatTime(2 ** (row.bit + 1))},
            countColumn("Count", row => row.count),
            {title: "Share", value: row => row.count, number: true, show: row => formatShare(row.count, group.sorted.length)},
        ],
    });
}

// Of a folded timeline: lengths as counts of buckets, eight to a power of two.
function bucketStart(bucket) {
    return 2 ** Math.floor(bucket / 8) * (1 + bucket % 8 / 8);
}

function foldedGroups(model) {
    const groups = new Map(), tails = model.tails, longest = new Map();

    for (const thread of model.threads) {
        for (const [at, , , ns] of thread.sums)
            longest.set(at, Math.max(longest.get(at) || 0, ns));
    }
    for (let i = 0; i < tails.state.length; i++) {
        const state = model.states[tails.state[i]], name = state.kind === "r" ? "running" : state.kind === "q" ? "ready" : stateLabel(state);

        if (!groups.has(name))
            groups.set(name, {name, counts: new Map(), count: 0, longest: 0});
        const group = groups.get(name);
        group.counts.set(tails.bucket[i], (group.counts.get(tails.bucket[i]) || 0) + tails.count[i]);
        group.count += tails.count[i];
        group.longest = Math.max(group.longest, longest.get(tails.state[i]) || 0);
    }
    return [...groups.values()];
}

// Below what so large a part of the stretches were: the end of the bucket that holds it.
function bucketPercentile(group, part) {
    let left = Math.ceil(part * group.count);

    for (const bucket of [...group.counts.keys()].sort((a, b) => a - b)) {
        left -= group.counts.get(bucket);
        if (left <= 0)
            return Math.min(group.longest, bucketStart(bucket + 1));
    }
    return group.longest;
}

function drawFoldedTails(place, model) {
    const at = part => timeColumn("p" + 100 * part + " ≤", row => bucketPercentile(row, part));

    place.replaceChildren(
        element("p", {class: "note"}, "The timeline is folded (--html-max): of single stretches it is known how many were how long, of all " +
            "threads and the whole time. Percentiles are at most an eighth too high."),
        element("div", {id: "tail-table"}, makeTable({rows: foldedGroups(model), sort: 5, columns: [
            {title: "State", value: row => row.name},
            countColumn("Count", row => row.count),
            at(0.5), extra(at(0.9)), at(0.99), at(0.999),
            timeColumn("Longest", row => row.longest),
        ]})));
}

function drawTails(place, model) {
    if (model.tails && model.has_switches) {
        drawFoldedTails(place, model);
        return;
    }
    if (!model.has_switches || model.fold_ns !== 0) {
        place.replaceChildren(element("p", {}, model.ends
            ? "A live page knows sums of intervals, not the lengths of single waits: prcb record keeps these."
            : "Context switches were not recorded: there are no durations."));
        return;
    }
    const groups = durationsOf(model);
    if (!groups.length) {
        place.replaceChildren(element("p", {}, "No stretch ends in what is selected."));
        return;
    }
    const chosen = groups.find(group => group.name === tailView.kind) || groups[0];
    const at = part => timeColumn("p" + 100 * part, row => percentile(row.sorted, part));

    place.replaceChildren(
        element("p", {class: "note"}, "Lengths of single stretches that ended in the selection, exact. Ready is the time between being " +
            "able to run and running."),
        element("div", {id: "tail-table"}, makeTable({rows: groups, sort: 5, columns: [
            {title: "State", value: row => row.name},
            countColumn("Count", row => row.sorted.length),
            at(0.5), extra(at(0.9)), at(0.99), at(0.999),
            timeColumn("Longest", row => row.sorted[row.sorted.length - 1]),
        ]})),
        element("div", {class: "controls"}, element("label", {}, "Distribution of ", element("select", {
            id: "tail-kind", onchange: event => {
                tailView.kind = event.target.value;
                drawTails(place, model);
            }}, ...groups.map(group => element("option", {value: group.name, selected: group === chosen}, group.name))))),
        element("div", {}, heatMap(model, chosen)),
        histogramTable(chosen));
}
