// SPDX-License-Identifier: BSD-2-Clause
// Two recordings: what changed from A, the base, to B. Figures are per second of each one's time.

// Sums of the whole recording by a key: {key: value}. The figures of `prcb report --diff`.
function diffSums(model) {
    const sums = {total: new Map(), cause: new Map(), thread: new Map(), function: new Map()};
    const add = (kind, name, figure, value) => {
        const key = name + "\n" + figure;

        sums[kind].set(key, (sums[kind].get(key) || 0) + value);
    };
    const figures = {r: "running", q: "ready", w: "waiting"};

    for (const thread of model.threads) {
        for (const figure of model.has_switches ? Object.values(figures) : []) {
            add("total", figure, "", 0);
            add("thread", thread.pair, figure, 0);
        }
        for (const [index, , ns] of thread.sums) {
            const state = model.states[index];

            add("total", figures[state.kind], "", ns);
            add("thread", thread.pair, figures[state.kind], ns);
            if (state.kind === "w")
                add("cause", state.cause || "[not known]", "", ns);
        }
    }
    for (let i = 0; i < model.sampleNode.length; i++) {
        const node = model.sampleNode[i];
        const [name, file] = model.functions[node ? model.nodeFunction[node] >> 1 : model.functions.length - 1];

        add("function", name, file, model.sampleWeight[i]);
    }
    return sums;
}

function diffRows(a, b, kind) {
    const rows = [];

    for (const key of new Set([...a.diff[kind].keys(), ...b.diff[kind].keys()])) {
        const [name, figure] = key.split("\n"), row = {name, figure};

        row.a = a.diff[kind].get(key) || 0;
        row.b = b.diff[kind].get(key) || 0;
        row.rateA = row.a / a.span_ns * 1e9;
        row.rateB = row.b / b.span_ns * 1e9;
        row.change = row.rateB - row.rateA;
        rows.push(row);
    }
    return rows;
}

// In words and colour: more is not always worse, but it is more.
function changeCell(words, change) {
    return element("span", {class: change > 0 ? "more" : change < 0 ? "less" : ""}, words);
}

function diffTable(rows, kind, unit) {
    const format = value => unit === "ns" ? formatTime(value) : formatCount(value);
    const rate = (title, of, value) => ({title, number: true, value: of, show: row => format(of(row)),
                                         exact: row => formatExact(value(row), unit) + " in all"});
    const share = row => row.a ? 100 * row.change / row.rateA : row.b ? Infinity : 0;

    return element("div", {id: "diff-" + kind}, makeTable({rows, sort: kind === "total" ? 0 : -1, columns: [
        {title: "Name", value: row => row.name},
        ...(kind === "thread" ? [{title: "Figure", value: row => row.figure}] : []),
        ...(kind === "function" ? [{title: "File", value: row => row.figure}] : []),
        rate("A", row => row.rateA, row => row.a), rate("B", row => row.rateB, row => row.b),
        {title: "Change", number: true, value: row => row.change,
         show: row => changeCell((row.change > 0 ? "+" : "") + format(row.change), row.change)},
        {title: "Of A", number: true, value: share, show: row => changeCell(
            share(row) === Infinity ? "new" : (share(row) > 0 ? "+" : "") + share(row).toFixed(1) + " %", row.change)},
    ]}));
}

function drawDiff(place) {
    const {base, other} = page, unit = other.unit, about = model => `${formatTime(model.span_ns)} of ` +
        `${model.facts.command || "a recording"}, ${model.facts.started || "start not known"}`;
    const add = (title, kind, of) => {
        const rows = diffRows(base, other, kind);

        if (!rows.length)
            return;
        rows.sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
        place.append(element("h2", {}, title), diffTable(rows, kind, of));
    };

    for (const model of [base, other])
        model.diff = model.diff || diffSums(model);
    place.replaceChildren(
        element("p", {}, "A: ", named(about(base))), element("p", {}, "B: ", named(about(other))),
        element("p", {class: "note"}, "Figures are per second of each recording, of all of it. Threads are paired by their names " +
            "without digits, functions by name and file."),
        element("div", {class: "controls"}, element("label", {}, "The other views show ", element("select", {
            id: "which", onchange: event => {
                page.model = event.target.value === "a" ? base : other;
                select({from: null, to: null, only: null});
            }}, element("option", {value: "b", selected: page.model === other}, "B"),
            element("option", {value: "a", selected: page.model === base}, "A")))));
    add("In all", "total", "ns");
    add("Waiting, by cause", "cause", "ns");
    add("Threads", "thread", "ns");
    if (base.unit === unit)
        add("Functions, self", "function", unit);
}
