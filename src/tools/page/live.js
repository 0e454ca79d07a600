// SPDX-License-Identifier: BSD-2-Clause
// A page of prcb serve: frames come as server-sent events (docs/page.md) and become the model that a
// recording has. A thread's stretches are the parts of its intervals, one behind the other.

const live = {frames: [], stacks: new Map(), nodes: new Map(), model: null, paused: false, waiting: null, number: -1,
              state: "connecting", pointer: false, behind: false};

// ---- stacks: one tree of functions, which only grows

function beginTree(model) {
    live.stacks.clear();
    live.nodes.clear();
    Object.assign(model, {caller: [0], nodeFunction: [0], functions: [], placeWords: new Map(), either: new Set()});
}

function numberOf(map, key, make) {
    if (!map.has(key))
        map.set(key, make());
    return map.get(key);
}

// A stack's place: a node twice, plus one where it idles by design (kind 1); of kind 2 it may.
function addStackPlace(model, [id, kind, word, names]) {
    let node = 0;

    for (let i = 0; i < names.length; i += 2) {
        const called = numberOf(live.nodes, names[i] + "\n" + names[i + 1],
                                () => 2 * (model.functions.push([names[i], names[i + 1]]) - 1));

        node = numberOf(live.nodes, node + " " + called, () => {
            model.nodeFunction.push(called);
            return model.caller.push(node) - 1;
        });
    }
    live.stacks.set(id, 2 * node + (kind === 1));
    model.placeWords.set(2 * node + (kind === 1), word);
    if (kind === 2)
        model.either.add(node);
}

// The place of a stack in a state: who is held up (stopped, frozen) idles nowhere.
function placeIn(state, stack) {
    const place = live.stacks.get(stack) || 0;

    return live.model.states[state].held ? place & ~1 : place;
}

// ---- frames become a model

const threadRow = {id: 0, pid: 1, tid: 2, name: 3, pair: 4, state: 5, stack: 6, ended: 7, parts: 8, credits: 9};

function putStretch(thread, state, ns, times, place) {
    if (ns <= 0)
        return;
    const last = thread.stretches.length - 1, before = thread.stretches[last];

    if (before && before.state === state && before.place === place && !times && !before.cell)
        before.ns += ns;
    else
        thread.stretches.push({state, start: thread.cursor, ns, times, place, cell: times !== 0});
    thread.cursor += ns;
}

// Until a moment it went on with what it was in.
function goOn(thread, until) {
    if (until > thread.cursor)
        putStretch(thread, thread.state, until - thread.cursor, 0, placeIn(thread.state, thread.stack));
}

// The parts of an interval; time of a cause is divided by its stacks, and the rest has none.
function putParts(thread, row) {
    const parts = row[threadRow.parts], credits = row[threadRow.credits];

    for (let i = 0; i < parts.length; i += 3) {
        let left = parts[i + 2], times = parts[i + 1];

        for (let k = 0; k < credits.length; k += 3) {
            if (credits[k] !== parts[i])
                continue;
            thread.stretches.push({state: parts[i], start: thread.cursor, ns: credits[k + 2], times, cell: true,
                                   place: placeIn(parts[i], credits[k + 1])});
            thread.cursor += credits[k + 2];
            left -= credits[k + 2];
            times = 0;
        }
        if (left > 0 || times) {
            thread.stretches.push({state: parts[i], start: thread.cursor, ns: left, times, place: 0, cell: true});
            thread.cursor += left;
        }
    }
}

function takeRow(threads, row, begin, end, frame) {
    const wall = row[threadRow.parts].reduce((sum, value, i) => i % 3 === 2 ? sum + value : sum, 0);
    let thread = threads.get(row[threadRow.id]);

    if (!thread) {
        thread = {pid: row[threadRow.pid], tid: row[threadRow.tid], stretches: [], samples: 0, weight: 0, cursor: 0,
                  state: 0, stack: 0, seen: frame - 1, end: Infinity};
        threads.set(row[threadRow.id], thread);
        thread.cursor = begin;
        if (wall && wall < end - begin) // it began within the interval
            goOn(thread, end - wall);
    }
    thread.name = row[threadRow.name];
    thread.pair = row[threadRow.pair];
    if (thread.seen < frame - 1)
        goOn(thread, begin);
    if (wall || row[threadRow.state] !== thread.state || row[threadRow.stack] !== thread.stack) {
        if (!wall)
            goOn(thread, begin);
        putParts(thread, row);
        thread.seen = wall ? frame : frame - 1;
    }
    thread.state = row[threadRow.state];
    thread.stack = row[threadRow.stack];
    if (row[threadRow.ended])
        thread.end = thread.cursor;
}

function sumStretches(thread) {
    const sums = new Map();

    for (const {state, ns, times} of thread.stretches) {
        const sum = numberOf(sums, state, () => [state, 0, 0, 0]);

        sum[1] += times;
        sum[2] += ns;
    }
    return [...sums.values()];
}

// One column a member; the lists of threads one behind the other.
function placeLists(model, threads) {
    const total = threads.reduce((sum, thread) => sum + thread.stretches.length, 0);
    let at = 0;

    Object.assign(model, {first: new Uint32Array(threads.length + 1), state: new Uint16Array(total), ns: new Float64Array(total),
                          start: new Float64Array(total), times: new Float64Array(total), place: new Uint32Array(total),
                          cpu: new Uint16Array(total).fill(0xffff)});
    threads.forEach((thread, index) => {
        thread.index = index;
        thread.sums = sumStretches(thread);
        model.first[index] = at;
        for (const stretch of thread.stretches) {
            model.state[at] = stretch.state;
            model.ns[at] = stretch.ns;
            model.start[at] = stretch.start;
            model.times[at] = stretch.times;
            model.place[at++] = stretch.place;
        }
        delete thread.stretches;
    });
    model.first[threads.length] = at;
}

function sumProcessors(frames) {
    const sum = {cpu: "all", samples: 0};

    for (const {processors} of frames) {
        for (const [part, ns] of Object.entries(processors || {}))
            sum[part + (part.endsWith("_ns") ? "" : "_ns")] = (sum[part + "_ns"] || sum[part] || 0) + ns;
    }
    return frames.some(frame => frame.processors) ? [sum] : [];
}

// The model of what the frames say, in the object that is there: views keep it.
function rebuild() {
    const model = live.model, frames = live.frames, threads = new Map();
    const origin = frames[0].end_ns - frames[0].ns, last = frames[frames.length - 1];
    const shift = model.origin === undefined ? 0 : origin - model.origin;

    frames.forEach((frame, index) => {
        for (const row of frame.threads)
            takeRow(threads, row, frame.end_ns - frame.ns - origin, frame.end_ns - origin, index);
    });
    for (const thread of threads.values()) {
        if (thread.end === Infinity)
            goOn(thread, last.end_ns - origin);
    }
    model.threads = [...threads.values()];
    placeLists(model, model.threads);
    Object.assign(model, {
        origin, span_ns: last.end_ns - origin, ends: frames.map(frame => frame.end_ns - origin), fold_ns: last.ns,
        untracked: last.untracked || 0, processors: sumProcessors(frames), sums: null, sampled: null, runs: [],
    });
    return shift;
}

function liveFrame(frame) {
    if (frame.number !== live.number + 1 || !live.model) {
        if (!frame.key)
            return false;
        live.frames = [];
        live.model = live.model || {
            version: 1, losses: {}, complete: true, unit: "ns", has_switches: true, has_stacks: true, samples: 0, weight: 0,
            words: [""], waits: null, runThread: [], sampleTime: [], sampleThread: [], sampleNode: [], sampleCount: [],
            sampleWeight: []};
        beginTree(live.model);
    }
    live.number = frame.number;
    if (frame.key)
        Object.assign(live.model, {facts: frame.facts, states: frame.states, has_wait_stacks: frame.facts.stacks === "1"});
    for (const stack of frame.stacks)
        addStackPlace(live.model, stack);
    live.frames.push(frame);
    dropOld(Number(live.model.facts.history_frames));
    return true;
}

// Key frames begin what is kept, for the others do not name all threads.
function dropOld(most) {
    let keep = 0;

    for (let i = 1; i <= live.frames.length - most; i++) {
        if (live.frames[i].key)
            keep = i;
    }
    live.frames.splice(0, keep);
}

// A range of whole intervals: only of those the sums are exact.
function wholeIntervals(model, range) {
    const at = model.ends.findIndex(end => end > range.from), end = model.ends.find(moment => moment >= range.to);

    return {from: at > 0 ? model.ends[at - 1] : 0, to: end === undefined ? model.span_ns : end};
}

// ---- the page

function liveLacks(model) {
    const lacks = [];

    if (model.facts.causes === "0")
        lacks.push("Causes of waits are not known without eBPF" +
                   (model.facts.tier_reason ? ` (${model.facts.tier_reason})` : "") + ": prcb doctor says how to get them.");
    if (model.facts.scope === "own")
        lacks.push("Only your own processes are shown: not everything may be profiled.");
    if (!model.has_wait_stacks)
        lacks.push("Stacks of waits are not read.");
    if (model.untracked)
        lacks.push(`${formatCount(model.untracked)} threads were not followed: there was no room (--max-threads).`);
    return lacks;
}

function showLiveState() {
    const words = live.paused ? "Paused" : {connecting: "Connecting", open: "Live",
        lost: "The connection is lost: trying again", ended: "prcb serve has ended"}[live.state];

    document.getElementById("live-state").textContent = words;
    document.getElementById("live-pause").textContent = live.paused ? "Go on" : "Pause";
    document.body.dataset.live = live.paused ? "paused" : live.state;
}

// What a person is at is not taken away: a field that is typed in, a drag.
function isBusy() {
    const focus = document.activeElement;

    return live.pointer || (focus && /^(INPUT|SELECT)$/.test(focus.tagName));
}

function moveWindows(shift, spanBefore) {
    const view = timelineView, span = live.model.span_ns;
    const follow = view.to >= spanBefore, whole = follow && view.from <= 0;

    if (view.model) {
        view.from -= shift;
        view.to -= shift;
        if (follow) {
            view.from = whole ? 0 : Math.max(0, view.from + span - view.to);
            view.to = span;
        } else if (view.from < 0) {
            Object.assign(view, {from: 0, to: Math.min(span, view.to - view.from)});
        }
    }
    if (selection.from === null)
        return;
    selection.from = Math.max(0, selection.from - shift);
    selection.to -= shift;
    if (selection.to <= selection.from)
        selection.from = selection.to = null;
}

function refresh() {
    if (live.paused || document.hidden || isBusy()) {
        live.behind = true;
        return;
    }
    const spanBefore = live.model.span_ns, focus = document.activeElement && document.activeElement.id, y = window.scrollY;
    const stage = document.querySelector("main > section:not([hidden]) .stage"), top = stage ? stage.scrollTop : 0;

    live.behind = false;
    moveWindows(rebuild(), spanBefore);
    redraw();
    const stageNow = document.querySelector("main > section:not([hidden]) .stage");
    if (stageNow && top) {
        stageNow.scrollTop = top;
        stageNow.dispatchEvent(new Event("scroll"));
    }
    if (focus && document.getElementById(focus))
        document.getElementById(focus).focus({preventScroll: true});
    window.scrollTo(0, y);
    document.body.dataset.frame = live.number;
}

function showLive() {
    const line = element("p", {id: "live-line"}, element("span", {id: "live-state", role: "status"}), " ",
        element("button", {type: "button", id: "live-pause", onclick: () => {
            live.paused = !live.paused;
            showLiveState();
            if (!live.paused)
                refresh();
        }}));

    document.querySelector("header").append(line);
    for (const [event, down] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]]) {
        addEventListener(event, () => {
            live.pointer = down;
        }, true);
    }
    for (const event of ["visibilitychange", "focusout"])
        document.addEventListener(event, () => setTimeout(() => live.behind && refresh()));
    showLiveState();
}

// Resolves to the model when there is one.
function liveModel() {
    // The token was for the first request: from here on there is a cookie, which no script can read.
    history.replaceState(null, "", location.pathname + location.hash);
    document.getElementById("loading").textContent = "Waiting for the first interval ...";
    return new Promise((resolve, reject) => {
        const source = new EventSource("events");
        const tell = state => {
            live.state = state;
            if (document.getElementById("live-state"))
                showLiveState();
        };
        let due = null;

        source.onopen = () => tell("open");
        source.onerror = () => {
            tell(source.readyState === EventSource.CLOSED ? "ended" : "lost");
            if (!live.model && source.readyState === EventSource.CLOSED)
                reject(new Error("the server refused: open the address that prcb serve printed"));
        };
        source.onmessage = event => {
            if (!liveFrame(JSON.parse(event.data)))
                return;
            // Frames of the history come at once: one drawing for all of them.
            clearTimeout(due);
            due = setTimeout(() => {
                if (document.body.dataset.ready) {
                    refresh();
                } else {
                    rebuild();
                    resolve(live.model);
                    document.body.dataset.frame = live.number;
                }
            }, 20);
        };
    });
}
