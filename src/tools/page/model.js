// SPDX-License-Identifier: BSD-2-Clause
// What is selected, and sums over it. The one selection: a range of time, and threads.

// {from, to} in ns from the start (null: all of it); only: null, or {kind: "thread"|"pid"|"pair", key}.
const selection = {from: null, to: null, only: null};

function isSelected(thread, only) {
    return !only || (only.kind === "thread" ? thread.index === only.key
                     : only.kind === "pid"  ? thread.pid === only.key
                                            : thread.pair === only.key);
}

function rangeOf(model) {
    return selection.from === null ? {from: 0, to: model.span_ns, whole: true}
                                   : {from: selection.from, to: selection.to, whole: false};
}

// The first stretch of a thread that ends behind a moment.
function firstAfter(model, thread, moment) {
    let low = model.first[thread], high = model.first[thread + 1];

    while (low < high) {
        const middle = (low + high) >> 1;

        if (model.start[middle] + model.ns[middle] <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Time, number and longest stretch of each thread and state in the range; [thread * states + state]. Of each thread
// also the time that it ran, was ready and waited.
function sumsOf(model) {
    const range = rangeOf(model), states = model.states.length;
    const key = range.whole ? "" : range.from + "-" + range.to;

    if (model.sums && model.sums.key === key)
        return model.sums;
    const size = model.threads.length * states;
    const sums = {key, ns: new Float64Array(size), count: new Float64Array(size),
                  longest: new Float64Array(size)};
    model.threads.forEach((thread, index) => {
        const base = index * states;

        if (range.whole) {
            for (const [state, count, ns, longest] of thread.sums) {
                sums.ns[base + state] = ns;
                sums.count[base + state] = count;
                sums.longest[base + state] = longest;
            }
            return;
        }
        const end = model.first[index + 1];
        for (let i = firstAfter(model, index, range.from); i < end && model.start[i] < range.to; i++) {
            const from = Math.max(model.start[i], range.from);
            const place = base + model.state[i];
            const ns = Math.min(model.start[i] + model.ns[i], range.to) - from;

            sums.ns[place] += ns;
            sums.count[place] += model.times ? model.times[i] : 1;
            if (ns > sums.longest[place])
                sums.longest[place] = ns;
        }
    });
    addKinds(model, sums);
    model.sums = sums;
    return sums;
}

const kindNames = {r: "run", q: "ready", w: "wait"};

function addKinds(model, sums) {
    const states = model.states.length, threads = model.threads.length;

    for (const name of Object.values(kindNames))
        sums[name] = new Float64Array(threads);
    for (let state = 1; state < states; state++) {
        const times = sums[kindNames[model.states[state].kind]];

        for (let thread = 0; times && thread < threads; thread++)
            times[thread] += sums.ns[thread * states + state];
    }
}

// What some threads waited for longest: {state, ns}; undefined if they did not wait.
function longestWait(model, threads) {
    const sums = sumsOf(model), states = model.states.length;
    let longest;

    for (let state = 1; state < states; state++) {
        let ns = 0;

        if (model.states[state].kind !== "w")
            continue;
        for (const thread of threads)
            ns += sums.ns[thread.index * states + state];
        if (ns > (longest ? longest.ns : 0))
            longest = {state, ns};
    }
    return longest;
}

// Of some threads: {run, ready, wait, states: [{state, ns, count, longest}] by time}.
function totalsOf(model, threads) {
    const sums = sumsOf(model), states = model.states.length;
    const totals = {run: 0, ready: 0, wait: 0, states: []};

    for (let state = 1; state < states; state++) {
        const row = {state, ns: 0, count: 0, longest: 0};

        for (const thread of threads) {
            const place = thread.index * states + state;

            row.ns += sums.ns[place];
            row.count += sums.count[place];
            row.longest = Math.max(row.longest, sums.longest[place]);
        }
        if (!row.count && !row.ns)
            continue;
        totals.states.push(row);
        totals[kindNames[model.states[state].kind]] += row.ns;
    }
    totals.states.sort((a, b) => b.ns - a.ns);
    return totals;
}

function selectedThreads(model) {
    return model.threads.filter(thread => isSelected(thread, selection.only));
}

// Samples and weight by thread in the range.
function samplesOf(model) {
    const range = rangeOf(model);
    const key = range.whole ? "" : range.from + "-" + range.to;

    if (model.sampled && model.sampled.key === key)
        return model.sampled;
    const threads = model.threads.length + 1;
    const sampled = {key, count: new Float64Array(threads), weight: new Float64Array(threads)};
    eachSample(model, null, i => {
        sampled.count[model.sampleThread[i]] += model.sampleCount[i];
        sampled.weight[model.sampleThread[i]] += model.sampleWeight[i];
    });
    model.sampled = sampled;
    return sampled;
}

// Calls fn with the index of each sample in the range, of the threads that are selected by only.
function eachSample(model, only, fn) {
    const range = rangeOf(model), times = model.sampleTime;

    for (let i = 0; i < times.length; i++) {
        if (!range.whole && (times[i] < range.from || times[i] >= range.to))
            continue;
        const thread = model.threads[model.sampleThread[i]];
        if (!only || (thread && isSelected(thread, only)))
            fn(i);
    }
}

// Running stretches of each processor in the order of time: {stretch, thread} columns.
function processorRuns(model) {
    if (model.runs)
        return model.runs;
    const lists = new Map(), add = (stretch, thread) => {
        const cpu = model.cpu[stretch];

        if (cpu === 0xffff) // not known
            return;
        if (!lists.has(cpu))
            lists.set(cpu, {cpu, stretch: [], thread: []});
        lists.get(cpu).stretch.push(stretch);
        lists.get(cpu).thread.push(thread);
    };
    const runs = model.states.map(state => state.kind === "r");

    if (model.runThread.length) {
        const cursors = model.first.slice();

        for (const thread of model.runThread) {
            while (cursors[thread] < model.first[thread + 1] && !runs[model.state[cursors[thread]]])
                cursors[thread]++;
            if (cursors[thread] < model.first[thread + 1])
                add(cursors[thread]++, thread);
        }
    } else {
        const all = [];

        for (let thread = 0; thread < model.threads.length; thread++) {
            for (let i = model.first[thread]; i < model.first[thread + 1]; i++) {
                if (runs[model.state[i]])
                    all.push([i, thread]);
            }
        }
        all.sort((a, b) => model.start[a[0]] - model.start[b[0]]);
        all.forEach(([stretch, thread]) => add(stretch, thread));
    }
    model.runs = [...lists.values()].sort((a, b) => a.cpu - b.cpu).map(list => ({
        cpu: list.cpu, stretch: Uint32Array.from(list.stretch), thread: Uint32Array.from(list.thread)}));
    return model.runs;
}

// The first run of a processor that ends behind a moment.
function firstRunAfter(model, runs, moment) {
    let low = 0, high = runs.stretch.length;

    while (low < high) {
        const middle = (low + high) >> 1, stretch = runs.stretch[middle];

        if (model.start[stretch] + model.ns[stretch] <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Who ran on the processor that the threads were ready for, while they were: exact, with a rest.
// null: not known of a folded timeline.
function ranInstead(model, threads) {
    const range = rangeOf(model), by = new Float64Array(model.threads.length);
    let total = 0, found = 0;

    if (model.fold_ns !== 0 || !model.has_switches)
        return null;
    const runs = new Map(processorRuns(model).map(list => [list.cpu, list]));
    for (const thread of threads) {
        const end = model.first[thread.index + 1];

        for (let i = firstAfter(model, thread.index, range.from);
             i < end && model.start[i] < range.to; i++) {
            if (model.states[model.state[i]].kind !== "q")
                continue;
            const from = Math.max(model.start[i], range.from);
            const to = Math.min(model.start[i] + model.ns[i], range.to);
            total += to - from;
            if (i + 1 >= end || model.states[model.state[i + 1]].kind !== "r")
                continue; // where it would have run is not known
            const list = runs.get(model.cpu[i + 1]);
            if (!list)
                continue;
            for (let j = firstRunAfter(model, list, from); j < list.stretch.length; j++) {
                const stretch = list.stretch[j], begin = model.start[stretch];

                if (begin >= to)
                    break;
                const ns = Math.min(begin + model.ns[stretch], to) - Math.max(begin, from);
                by[list.thread[j]] += ns;
                found += ns;
            }
        }
    }
    const rows = [];
    by.forEach((ns, index) => ns && rows.push({thread: model.threads[index], ns}));
    rows.sort((a, b) => b.ns - a.ns);
    return {total, rest: total - found, rows};
}

// Where the selected threads waited: calls fn with state, node of the stack (0: none), whether that idles by
// design, a word for it or why there is none, and the time. These sum to the time of each state.
function eachWait(model, only, fn) {
    const waits = model.waits, states = model.states.length;

    if (rangeOf(model).whole && waits) {
        for (let i = 0; i < waits.thread.length; i++) {
            if (!only || isSelected(model.threads[waits.thread[i]], only))
                fn(waits.state[i], waits.place[i] >> 1, waits.place[i] & 1, model.words[waits.word[i]], waits.ns[i],
                   model.threads[waits.thread[i]]);
        }
        return;
    }
    const sums = sumsOf(model), range = rangeOf(model), rest = new Float64Array(states);
    const none = !model.has_wait_stacks ? "" : model.ends ? "[no stack]" : "[no stack of single waits]";
    for (const thread of model.threads) {
        if (only && !isSelected(thread, only))
            continue;
        for (let state = 1; state < states; state++)
            rest[state] = model.states[state].kind === "w" ? sums.ns[thread.index * states + state] : 0;
        const end = model.place ? model.first[thread.index + 1] : 0;
        for (let i = model.place ? firstAfter(model, thread.index, range.from) : 0;
             i < end && model.start[i] < range.to; i++) {
            if (!model.place[i])
                continue;
            const ns = Math.min(model.start[i] + model.ns[i], range.to) - Math.max(model.start[i], range.from);

            rest[model.state[i]] -= ns;
            fn(model.state[i], model.place[i] >> 1, model.place[i] & 1,
               model.placeWords ? model.placeWords.get(model.place[i]) : "", ns, thread);
        }
        for (let state = 1; state < states; state++) {
            if (rest[state] > 0)
                fn(state, 0, 0, none, rest[state], thread);
        }
    }
}

// Who ended the waits of the threads that are selected: calls fn with state, waker (-1: not known), time, number
// and the thread. These sum to the time of each state. False: it was not recorded, or not of a range.
function eachWake(model, only, fn) {
    const range = rangeOf(model), states = model.states.length, sums = sumsOf(model), wakes = model.wakes;

    if (!model.has_wakers || (!range.whole && !model.waker))
        return false;
    const rest = new Float64Array(sums.ns.length);
    const add = (index, state, waker, ns, count) => {
        rest[index * states + state] += ns;
        fn(state, waker, ns, count, model.threads[index]);
    };
    for (let i = 0; range.whole && i < wakes.thread.length; i++) {
        if (!only || isSelected(model.threads[wakes.thread[i]], only))
            add(wakes.thread[i], wakes.state[i], wakes.waker[i], wakes.ns[i], wakes.count[i]);
    }
    for (const thread of model.threads) {
        if (only && !isSelected(thread, only))
            continue;
        const end = range.whole ? 0 : model.first[thread.index + 1];
        for (let i = range.whole ? 0 : firstAfter(model, thread.index, range.from); i < end && model.start[i] < range.to; i++) {
            if (model.waker[i])
                add(thread.index, model.state[i], model.waker[i] - 1,
                    Math.min(model.start[i] + model.ns[i], range.to) - Math.max(model.start[i], range.from), 1);
        }
        for (let state = 1; state < states; state++) {
            const left = sums.ns[thread.index * states + state] - rest[thread.index * states + state];

            if (model.states[state].kind === "w" && left > 0)
                fn(state, -1, left, 0, thread);
        }
    }
    return true;
}

function wakerName(model, waker) {
    if (waker < 0)
        return "[not known, or it goes on]";
    const [, name, , tid] = model.wakers[waker];

    return tid ? `${name || "[no name]"} (${tid})` : name;
}

// Colours are roles of style.css; those of waits come with the state.
function stateRole(state) {
    return state.kind === "r" ? "run" : state.kind === "q" ? "ready" : state.kind === "?" ? "unknown"
        : state.colour;
}

function stateLabel(state) {
    if (state.kind === "r")
        return "running";
    if (state.kind === "q")
        return state.cause ? "ready, after " + state.cause : "ready";
    return state.kind === "?" ? "not known" : state.cause || "waiting, cause not known";
}

function stateWords(state) {
    if (state.kind === "w")
        return state.words || "waiting, for what is not known";
    return stateLabel(state);
}

// The functions of a stack, innermost first, count of them at most. A name with arguments, a place or of nothing
// known is as it is.
function functionsOf(model, node, count) {
    const names = [];

    for (; node && names.length < count; node = model.caller[node]) {
        const name = functionName(model, model.nodeFunction[node]);

        names.push(/[(+[]/.test(name) ? name : name + "()");
    }
    return node ? [...names, "…"] : names;
}

function functionName(model, code) {
    const [name, file] = model.functions[code >> 1] || ["[unknown]", ""];

    return name === "[unknown]" && file ? "[unknown] " + file : name || "[unknown]";
}
