// SPDX-License-Identifier: BSD-2-Clause
// Flame view: what called what, and what threads waited for; the root is on top.
// A frame: {name, file, value, role, children, up}; its own value is what the children leave. threads: those that have no
// frames yet, and their values.
const THREAD_FRAMES = 1000;


const flameView = {change: true, source: "all", search: "", zoom: [], callersOf: null, focus: null};

// The unit of samples: time, or a number of events.
function formatWeight(model, value) {
    return model.unit === "ns" ? formatTime(value) : formatCount(value);
}

function weightColumn(model, title, value) {
    return {title, value, number: true, show: row => formatWeight(model, value(row)),
            exact: row => formatExact(value(row), model.unit)};
}

function frameOf(name, file, role, up) {
    return {name, file, role, value: 0, children: [], up, byKey: new Map(), threads: null};
}

function frameKey(name, file) {
    return file ? name + "\n" + file : name;
}

function childOf(frame, name, file, role) {
    const key = frameKey(name, file);
    let child = frame.byKey.get(key);

    if (!child) {
        child = frameOf(name, file, role, frame);
        frame.byKey.set(key, child);
        frame.children.push(child);
    }
    return child;
}

function threadLabel(thread) {
    return thread.label || (thread.label = `${thread.name || "[no name]"} (${thread.tid})`);
}

// Adds to what a frame has of a thread: what a frame has of one comes together, or is added when it is opened. There may
// be 100,000 threads in each of many frames.
function addThread(frame, thread, value) {
    const all = frame.threads = frame.threads || {thread: [], value: []}, last = all.thread.length - 1;

    if (all.thread[last] === thread) {
        all.value[last] += value;
        return;
    }
    all.thread.push(thread);
    all.value.push(value);
}

// Gives frames to the threads with the largest values, and one to all others, which has a value for each.
function openThreads(frame, most) {
    const {thread, value} = frame.threads, count = thread.length, others = {thread: [], value: []};
    const least = count > most ? Float64Array.from(value).sort()[count - most] : 0;
    let rest = 0;

    frame.threads = null;
    for (let i = 0; i < count; i++) {
        if (value[i] >= least && frame.children.length < most) {
            childOf(frame, threadLabel(thread[i]), "", frame.role).value += value[i];
            continue;
        }
        others.thread.push(thread[i]);
        others.value.push(value[i]);
        rest += value[i];
    }
    if (rest)
        Object.assign(childOf(frame, `[${formatCount(others.thread.length)} threads with less]`, "", frame.role), {value: rest, threads: others});
    frame.children.sort((a, b) => b.value - a.value);
}

function sortFrames(root) {
    const todo = [root];

    while (todo.length) {
        const frame = todo.pop();

        if (frame.threads)
            openThreads(frame, page.base ? Infinity : THREAD_FRAMES);
        else {
            frame.children.sort((a, b) => b.value - a.value);
            for (const child of frame.children)
                todo.push(child);
        }
    }
    return root;
}

// Weight and number of the selected samples at each node of the tree of stacks.
function nodeWeights(model, only) {
    const weights = new Float64Array(model.caller.length), counts = new Float64Array(model.caller.length);

    eachSample(model, only, i => {
        weights[model.sampleNode[i]] += model.sampleWeight[i];
        counts[model.sampleNode[i]] += model.sampleCount[i];
    });
    return {weights, counts};
}

// Adds a value along the stack of a node, outermost first, below a frame.
function addStack(model, frame, node, value) {
    const path = [];

    for (; node; node = model.caller[node])
        path.push(node);
    frame.value += value;
    while (path.length) {
        const code = model.nodeFunction[path.pop()], [, file] = model.functions[code >> 1] || ["", ""];

        frame = childOf(frame, functionName(model, code), file, code & 1 ? "kernel" : "run");
        frame.value += value;
    }
}

// The weights of the selected samples by thread and node.
function threadWeights(model) {
    const threads = new Map();

    eachSample(model, selection.only, i => {
        const thread = model.sampleThread[i], node = model.sampleNode[i];

        if (!threads.has(thread))
            threads.set(thread, new Map());
        threads.get(thread).set(node, (threads.get(thread).get(node) || 0) + model.sampleWeight[i]);
    });
    return threads;
}

// What a thread ran is exact; its samples only divide it. Each gets its part of what is left, so that the last one
// leaves nothing.
function addRunning(model, root) {
    const sums = sumsOf(model), states = model.states.length, top = childOf(root, "running", "", "run");
    const threads = model.unit === "ns" ? threadWeights(model) : new Map();

    for (const thread of selectedThreads(model)) {
        const nodes = threads.get(thread.index) || new Map();
        let left = 0, weights = 0;

        for (let state = 1; state < states; state++)
            left += model.states[state].kind === "r" ? sums.ns[thread.index * states + state] : 0;
        root.value += left;
        nodes.forEach(weight => weights += weight);
        for (const [node, weight] of nodes) {
            const part = weight >= weights ? left : Math.floor(left * (weight / weights));

            left -= part;
            weights -= weight;
            addStack(model, top, node, part);
        }
        if (left) {
            top.value += left;
            childOf(top, "[no samples]", "", "unknown").value += left;
        }
    }
}

// The part of the threads' lives that their switches do not tell.
function addUnknown(model, root) {
    const sums = sumsOf(model), states = model.states.length, range = rangeOf(model);

    for (const thread of selectedThreads(model)) {
        let ns = Math.min(thread.start_ns + thread.life_ns, range.to) - Math.max(thread.start_ns, range.from);

        for (let state = 1; state < states; state++)
            ns -= sums.ns[thread.index * states + state];
        if (!(ns > 0)) // of a live page nobody knows
            continue;
        root.value += ns;
        childOf(root, "[not known]", "", "unknown").value += ns;
    }
}

// All time of the threads: running by stacks of samples, ready, waiting by cause and stack. It sums to their lives.
function allTree(model) {
    const root = frameOf("all time", "", "raised", null);

    addRunning(model, root);
    addOffCpu(model, root);
    addUnknown(model, root);
    return sortFrames(root);
}

function runningTree(model) {
    const root = frameOf("all", "", "raised", null), {weights} = nodeWeights(model, selection.only);

    weights.forEach((weight, node) => {
        if (!weight)
            return;
        if (node)
            addStack(model, root, node, weight);
        else {
            root.value += weight;
            childOf(root, "[no stack]", "", "unknown").value += weight;
        }
    });
    return sortFrames(root);
}

// Off the processor: by state, then by stack where it is known, else by name and thread; what idles by
// design has a branch of its own. A state's time is exact, and its frames sum to it.
function addOffCpu(model, root) {
    const sums = sumsOf(model), states = model.states.length;
    const labels = model.states.map(state => stateLabel(state)), roles = model.states.map(state => stateRole(state));
    const add = (frame, name, role, ns) => {
        const child = childOf(frame, name, "", role);

        child.value += ns;
        return child;
    };
    const addNamed = (frame, thread, role, ns) => addThread(add(frame, thread.pair || "[no name]", role, ns), thread, ns);

    eachWait(model, selection.only, (state, node, idle, word, ns, thread) => {
        const role = roles[state];
        let frame = idle ? add(root, "idle by design", "idle", ns) : root;

        root.value += ns;
        if (node) {
            addStack(model, childOf(frame, labels[state], "", role), node, ns);
            return;
        }
        frame = add(frame, labels[state], role, ns);
        addNamed(word ? add(frame, word, "unknown", ns) : frame, thread, role, ns);
    });
    for (const thread of selectedThreads(model)) {
        for (let state = 1; state < states; state++) {
            const ns = sums.ns[thread.index * states + state];

            if (!ns || model.states[state].kind !== "q")
                continue;
            root.value += ns;
            addNamed(add(root, labels[state], "ready", ns), thread, "ready", ns);
        }
    }
}

function waitTree(model) {
    const root = frameOf("all", "", "raised", null);

    addOffCpu(model, root);
    return sortFrames(root);
}

// By cause, then by who ended the wait, then by who waited.
function wakersTree(model) {
    const root = frameOf("all", "", "raised", null);

    eachWake(model, selection.only, (state, waker, ns, count, thread) => {
        const role = stateRole(model.states[state]);
        let frame = root;

        root.value += ns;
        for (const name of [stateLabel(model.states[state]), waker < 0 ? wakerName(model, waker) : "by " + wakerName(model, waker)]) {
            frame = childOf(frame, name, "", waker < 0 && frame !== root ? "unknown" : role);
            frame.value += ns;
        }
        addThread(frame, thread, ns);
    });
    return sortFrames(root);
}

// Who called a function, from it outward: the values of where it was outermost of its own calls.
function callersTree(model, name) {
    const root = frameOf(name, "", "match", null), {weights} = nodeWeights(model, selection.only);
    const is = node => functionName(model, model.nodeFunction[node]) === name;

    weights.forEach((weight, node) => {
        let found = 0;

        for (let at = weight ? node : 0; at; at = model.caller[at]) {
            if (is(at))
                found = at;
        }
        if (!found)
            return;
        let frame = root;
        root.value += weight;
        for (let at = model.caller[found]; at; at = model.caller[at]) {
            const code = model.nodeFunction[at], [, file] = model.functions[code >> 1] || ["", ""];

            frame = childOf(frame, functionName(model, code), file, code & 1 ? "kernel" : "run");
            frame.value += weight;
        }
    });
    return sortFrames(root);
}

// Functions by their own weight, of the samples that are selected.
function functionRows(model, only) {
    const {weights, counts} = nodeWeights(model, only), rows = new Map();
    const last = model.functions.length - 1;
    const row = code => {
        const index = code >> 1;

        if (!rows.has(index)) {
            rows.set(index, {index, name: functionName(model, code), file: (model.functions[index] || ["", ""])[1],
                             kernel: !!(code & 1), self: 0, total: 0, samples: 0, seen: -1});
        }
        return rows.get(index);
    };

    weights.forEach((weight, node) => {
        if (!counts[node])
            return;
        const leaf = row(node ? model.nodeFunction[node] : 2 * last);
        leaf.self += weight;
        leaf.samples += counts[node];
        if (!node)
            return;
        for (let at = node; at; at = model.caller[at]) {
            const each = row(model.nodeFunction[at]);

            if (each.seen !== node)
                each.total += weight;
            each.seen = node;
        }
    });
    return [...rows.values()].sort((a, b) => b.self - a.self);
}

const flameSources = {
    all: {words: "all time (exact)", tree: allTree, format: (model, value) => formatTime(value), unit: () => "ns",
          missing: model => model.has_switches ? null : "Context switches were not recorded."},
    running: {words: "running (samples)", tree: runningTree, format: formatWeight, unit: model => model.unit,
              missing: model => model.samples ? null : "No samples were recorded."},
    waits: {words: "not running (exact)", tree: waitTree, format: (model, value) => formatTime(value), unit: () => "ns",
            missing: model => model.has_switches ? null : "Context switches were not recorded."},
    wakers: {words: "waiting, by who ended it", tree: wakersTree, format: (model, value) => formatTime(value), unit: () => "ns",
             missing: model => !model.has_wakers ? "Who woke threads was not recorded."
                 : rangeOf(model).whole || model.waker ? null : "Of a folded timeline it is known for the whole time only."},
};

// A live page has no samples; without switches there are only these.
function usualSource(model) {
    return !model ? "all" : model.ends ? "waits" : model.has_switches ? "all" : "running";
}

function matches(frame, search) {
    return search && frame.name.toLowerCase().includes(search);
}

// What threads without frames have of it.
function matchedThreads(frame, search) {
    const {thread, value} = frame.threads || {thread: [], value: []};

    return value.reduce((sum, one, i) => threadLabel(thread[i]).toLowerCase().includes(search) ? sum + one : sum, 0);
}

// What the search found: the outermost matches of each branch, so that nothing counts twice.
function matchedValue(root, search) {
    const todo = [root];
    let sum = 0;

    while (todo.length) {
        const frame = todo.pop();

        if (matches(frame, search))
            sum += frame.value;
        else {
            sum += matchedThreads(frame, search);
            for (const child of frame.children)
                todo.push(child);
        }
    }
    return sum;
}

function treeDepth(root) {
    let depth = 0;

    for (let level = [root]; level.length; depth++)
        level = level.flatMap(frame => frame.children);
    return depth;
}

// Frames by their names without digits.
function alikeFrames(frames) {
    const groups = new Map();

    for (const frame of frames) {
        const key = frame.name.replace(/\d+/g, "#") + "\n" + frame.file;

        groups.set(key, [...(groups.get(key) || []), frame]);
    }
    return groups;
}

// Of a difference: what each frame of a tree has in the other recording. Frames that are alike, as threads of a
// pool, have the same there: its mean stands for each.
function compareTrees(root, other) {
    const todo = [[root, [other], 1]];

    while (todo.length) {
        const [frame, others, alike] = todo.pop();
        const theirs = alikeFrames(others.flatMap(one => one.children));

        frame.other = others.reduce((sum, one) => sum + one.value, 0) / alike;
        for (const [key, frames] of alikeFrames(frame.children))
            frames.forEach(child => todo.push([child, theirs.get(key) || [], alike * frames.length]));
    }
}

// Change per second of wall since A: {now, then, part}, part from -1 (gone) over 0 to 1 (new).
function changeOf(frame, model, otherModel, reversed) {
    const shown = frame.value / model.span_ns, other = frame.other / otherModel.span_ns;
    const [then, now] = reversed ? [shown, other] : [other, shown];

    return {now, then, part: now + then ? (now - then) / (now + then) : 0};
}

function changeWords({now, then}) {
    const sign = now > then ? "+" : now < then ? "−" : "±";

    return then ? sign + formatShare(Math.abs(now - then), then) : "+new";
}

function drawFlame(place, model, drawOther) {
    const view = flameView, source = flameSources[view.source] || flameSources.running;
    const missing = source.missing(model);
    const found = element("span", {id: "found", role: "status"});
    const search = element("input", {id: "search", type: "search", size: 18, value: view.search,
        placeholder: "function or thread", oninput: event => {
            view.search = event.target.value;
            draw();
        }});
    const choice = element("select", {id: "flame-source", onchange: event => {
        Object.assign(view, {source: event.target.value, callersOf: null, zoom: [], focus: null});
        remember();
        drawFlame(place, model);
    }}, ...Object.entries(flameSources).map(([value, {words}]) =>
        element("option", {value, selected: value === view.source}, words)));
    const info = element("p", {class: "info", role: "status"});
    const canvas = element("canvas", {tabindex: "0", role: "application", id: "flame-canvas",
        "aria-label": "Flame graph: arrows move, Enter zooms, Escape goes back, c shows callers"});
    const spacer = element("div", {class: "spacer"}), stage = element("div", {class: "stage"}, canvas, spacer);
    const colours = roleColours();
    let root, drawn = [];

    if (missing) {
        place.replaceChildren(element("div", {class: "controls"}, element("label", {}, "Show ", choice)),
                              element("p", {}, missing));
        return;
    }
    const treeOf = one => view.callersOf ? callersTree(one, view.callersOf) : source.tree(one);
    root = treeOf(model);
    const against = page.base && view.change ? (model === page.base ? page.other : page.base) : null;
    if (against && !source.missing(against))
        compareTrees(root, treeOf(against));
    const change = frame => against && frame.other !== undefined ? changeOf(frame, model, against, model === page.base) : null;

    // The frame that the zoom's names lead to, as far as they do.
    function zoomed() {
        let frame = root;

        for (const key of view.zoom) {
            const child = frame.children.find(one => frameKey(one.name, one.file) === key);

            if (!child)
                break;
            frame = child;
        }
        if (frame.threads)
            openThreads(frame, Infinity);
        return frame;
    }

    function keysTo(frame) {
        const keys = [];

        for (; frame.up; frame = frame.up)
            keys.unshift(frameKey(frame.name, frame.file));
        return keys;
    }

    function colourOf(frame, searched) {
        const changed = change(frame);

        if (matches(frame, searched))
            return colours.match;
        if (changed)
            return Math.abs(changed.part) < 0.02 ? colours.unknown : changed.part > 0 ? colours.more : colours.less;
        if (frame.role === "run" || frame.role === "kernel")
            return frame.colour || (frame.colour = nameColour(frame.file + frame.role));
        return colours[frame.role] || colours.other;
    }

    function draw() {
        const width = stage.clientWidth || 800, top = zoomed(), above = [];
        const searched = view.search.trim().toLowerCase();

        for (let frame = top.up; frame; frame = frame.up)
            above.unshift(frame);
        const total = (above.length + treeDepth(top)) * ROW;
        const {pen, height, scroll} = stageCanvas(stage, spacer, canvas, width, total, 160, colours.page);
        drawn = [];
        const put = (frame, x, size, depth) => {
            const y = depth * ROW - scroll;

            drawn.push({frame, x, size, depth});
            if (y > height || y + ROW < 0)
                return;
            pen.fillStyle = colourOf(frame, searched);
            const changed = change(frame);
            if (changed) { // paler, the smaller the change; its sign is in the text
                pen.globalAlpha = 0.35 + 0.65 * Math.min(1, Math.abs(changed.part) * 2);
                frame.sign = changeWords(changed) + " ";
            }
            pen.fillRect(x, y + 1, Math.max(0.5, size - 1), ROW - 1);
            pen.globalAlpha = 1;
            if (size > 24) {
                pen.fillStyle = (changed || ["raised", "idle", "unknown"].includes(frame.role)) && !matches(frame, searched)
                    ? colours.text : "#fff";
                pen.fillText(fitText(pen, (frame.sign || "") + frame.name, size - 6), x + 3, y + ROW / 2 + 1);
            }
            if (frame === view.focus) {
                pen.strokeStyle = colours.text;
                pen.lineWidth = 2;
                pen.strokeRect(x + 1, y + 1, Math.max(1, size - 2), ROW - 2);
            }
        };
        above.forEach((frame, depth) => put(frame, 0, width, depth));
        const todo = [[top, 0, width, above.length]];
        while (todo.length) {
            const [frame, x, size, depth] = todo.pop();
            let left = x;

            put(frame, x, size, depth);
            for (const child of frame.children) {
                const part = frame.value ? size * child.value / frame.value : 0;

                if (part >= 0.4)
                    todo.push([child, left, part, depth + 1]);
                left += part;
            }
        }
        found.textContent = searched ? `matches: ${formatShare(matchedValue(root, searched), root.value)} (` +
            `${source.format(model, matchedValue(root, searched))})` : "";
        found.dataset.value = searched ? matchedValue(root, searched) : "";
        canvas.dataset.total = root.value;
    }

    function tell(frame) {
        const own = frame.children.reduce((left, child) => left - child.value, frame.value);

        info.replaceChildren(named(frame.name), frame.file ? element("span", {}, " in ", named(frame.file)) : "",
            `: ${source.format(model, frame.value)} (${formatExact(frame.value, source.unit(model))}), ` +
            `${formatShare(frame.value, root.value)} of all; itself ${source.format(model, own)}` +
            (change(frame) ? `; ${changeWords(change(frame))} per second of wall from A to B` : ""));
    }

    function at(event) {
        const box = canvas.getBoundingClientRect(), x = event.clientX - box.left;
        const depth = Math.floor((event.clientY - box.top + stage.scrollTop) / ROW);

        return drawn.find(one => one.depth === depth && x >= one.x && x < one.x + one.size);
    }

    function zoomTo(frame) {
        view.zoom = keysTo(frame);
        view.focus = frame;
        stage.scrollTop = 0;
        tell(frame);
        draw();
    }

    function callers(frame) {
        if (view.source !== "running" || !frame.up)
            return;
        Object.assign(view, {callersOf: frame.name, zoom: [], focus: null});
        drawFlame(place, model);
    }

    function back() {
        if (view.zoom.length || !view.callersOf) {
            view.zoom = [];
            draw();
        } else {
            view.callersOf = null;
            drawFlame(place, model);
        }
    }

    canvas.addEventListener("click", event => {
        const one = at(event);

        if (one)
            zoomTo(one.frame);
    });
    canvas.addEventListener("pointermove", event => {
        const one = at(event);

        if (one)
            tell(one.frame);
    });
    canvas.addEventListener("keydown", event => {
        const focus = view.focus && drawn.some(one => one.frame === view.focus) ? view.focus : zoomed();
        const beside = by => {
            const row = focus.up ? focus.up.children : [focus];

            return row[row.indexOf(focus) + by] || focus;
        };
        const to = frame => {
            view.focus = frame;
            tell(frame);
            draw();
        };
        const keys = {
            ArrowDown: () => to(focus.children[0] || focus), ArrowUp: () => to(focus.up || focus),
            ArrowLeft: () => to(beside(-1)), ArrowRight: () => to(beside(1)),
            Enter: () => zoomTo(focus), Escape: back, c: () => callers(focus),
        };

        if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey)
            return;
        event.preventDefault();
        event.stopPropagation();
        keys[event.key]();
    });
    stage.addEventListener("scroll", draw);
    place.replaceChildren(
        view.source === "all" && !view.callersOf ? verdictLine(model) : "",
        element("div", {class: "controls"}, element("label", {}, "Show ", choice),
            element("label", {}, "Search ", search), found,
            page.base ? element("label", {}, element("input", {type: "checkbox", id: "flame-change", checked: view.change,
                onchange: event => {
                    view.change = event.target.checked;
                    drawFlame(place, model);
                }}), " colours of the change from A to B") : "",
            element("button", {type: "button", id: "callers", onclick: () => callers(view.focus || root)}, "Callers of the chosen"),
            element("button", {type: "button", onclick: back}, "Back to all")),
        view.callersOf ? element("p", {class: "note", id: "pivot"}, "Callers of ", named(view.callersOf),
                                 ", from it outward") : "",
        stage, info);
    if (view.source === "running")
        place.append(element("h2", {}, "Functions"), element("div", {id: "functions"}, functionTable(model)));
    watchSize(stage, draw);
    draw();
}

function functionTable(model) {
    const rows = functionRows(model, selection.only), whole = rows.reduce((sum, row) => sum + row.self, 0);

    return makeTable({rows, sort: 2, columns: [
        {title: "Function", value: row => row.name},
        {title: "File", value: row => row.file},
        weightColumn(model, "Self", row => row.self),
        {title: "Share", value: row => row.self, number: true, show: row => formatShare(row.self, whole)},
        ...(model.has_stacks ? [weightColumn(model, "With what it called", row => row.total)] : []),
        countColumn("Samples", row => row.samples),
    ]});
}
