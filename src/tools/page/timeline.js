// SPDX-License-Identifier: BSD-2-Clause
// Time from left to right: a row for each processor and each thread.

const ROW = 18, AXIS = 22;
const timelineView = {from: 0, to: 0, row: -1, stretch: -1, told: -1, toldRow: -1, model: null, search: "", scroll: 0,
                      pinned: new Set()};

function roleColours() {
    const style = getComputedStyle(document.documentElement), colours = {};

    for (const role of ["page", "raised", "text", "muted", "line", "accent", "run", "ready", "unknown", "lock",
                        "storage", "network", "idle", "other", "kernel", "more", "less", "match"])
        colours[role] = style.getPropertyValue("--" + role).trim();
    return colours;
}

// A colour that a name keeps, for who runs on a processor.
function nameColour(name) {
    let hash = 0;

    for (let i = 0; i < name.length; i++)
        hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
    return `hsl(${hash % 360} 45% ${45 + hash % 3 * 8}%)`;
}

// The canvas at the screen's own resolution, w by h in CSS pixels.
function sizeCanvas(canvas, w, h) {
    const scale = window.devicePixelRatio || 1;

    canvas.width = Math.max(1, Math.round(w * scale));
    canvas.height = Math.max(1, Math.round(h * scale));
    canvas.style.width = w + "px";
    canvas.style.height = h + "px";
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    return pen;
}

// A cleared canvas for the part of a scrolled stage that is in view: its contents are total pixels
// high, of which at most two thirds of the window are shown, but not less than least.
function stageCanvas(stage, spacer, canvas, width, total, least, background) {
    const height = Math.min(total, Math.max(least, Math.round(window.innerHeight * 0.65)));
    const pen = sizeCanvas(canvas, width, height), scroll = stage.scrollTop;

    stage.style.height = height + 2 + "px";
    spacer.style.height = Math.max(0, total - height) + "px";
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = background;
    pen.fillRect(0, 0, width, height);
    return {pen, height, scroll};
}

// A name cut to a width, with an ellipsis.
function fitText(pen, text, width) {
    if (pen.measureText(text).width <= width)
        return text;
    let low = 0, high = text.length;

    while (low < high) {
        const middle = (low + high + 1) >> 1;

        if (pen.measureText(text.slice(0, middle) + "…").width <= width)
            low = middle;
        else
            high = middle - 1;
    }
    return low ? text.slice(0, low) + "…" : "";
}

function timelineRows(model) {
    const rows = processorRuns(model).map(runs => ({kind: "processor", runs, label: "CPU " + runs.cpu}));
    const threads = selectedThreads(model).filter(thread => model.first[thread.index] < model.first[thread.index + 1]);
    const {run} = sumsOf(model);

    threads.sort((a, b) => run[b.index] - run[a.index]);
    for (const thread of threads)
        rows.push({kind: "thread", thread, label: `${thread.name || "[no name]"} ${thread.tid}`});
    return chosenRows(rows);
}

function rowKey(row) {
    return row.kind === "thread" ? row.thread.index : -1 - row.runs.cpu;
}

// Pinned rows first; of the others those that the search finds.
function chosenRows(rows) {
    const wanted = timelineView.search.toLowerCase(), isPinned = row => timelineView.pinned.has(rowKey(row));

    return [...rows.filter(isPinned),
            ...rows.filter(row => !isPinned(row) && (!wanted || row.label.toLowerCase().includes(wanted)))];
}

// Draws [from, to) bars through put(x, width, index): those below a pixel as the longest of it.
function drawBars(view, width, count, at, put) {
    const scale = width / (view.to - view.from);
    let pixel = -1, longest = 0, best = -1;

    for (let i = 0; i < count; i++) {
        const bar = at(i);

        if (bar.start >= view.to)
            break;
        const left = (Math.max(bar.start, view.from) - view.from) * scale;
        const size = (Math.min(bar.start + bar.ns, view.to) - view.from) * scale - left;
        if (size >= 1) {
            if (best >= 0)
                put(pixel, 1, best);
            best = -1;
            pixel = -1;
            put(left, size, bar.index);
            continue;
        }
        if (Math.floor(left) !== pixel) {
            if (best >= 0)
                put(pixel, 1, best);
            pixel = Math.floor(left);
            longest = 0;
            best = -1;
        }
        if (bar.ns > longest || best < 0) {
            longest = bar.ns;
            best = bar.index;
        }
    }
    if (best >= 0)
        put(pixel, 1, best);
}

const barHeights = {r: 1, q: 0.75, w: 0.4, "?": 0.12}; // states differ in height too

function drawThreadRow(pen, model, colours, thread, view, x, y, width) {
    const first = firstAfter(model, thread.index, view.from), end = model.first[thread.index + 1];
    const bar = {};

    drawBars(view, width, end - first, i => {
        bar.index = first + i;
        bar.start = model.start[bar.index];
        bar.ns = model.ns[bar.index];
        return bar;
    }, (left, size, index) => {
        const state = model.states[model.state[index]], height = (ROW - 4) * barHeights[state.kind];

        pen.fillStyle = colours[stateRole(state)];
        pen.fillRect(x + left, y + ROW - 2 - height, Math.max(size, 0.7), height);
    });
}

function drawProcessorRow(pen, model, runs, view, x, y, width) {
    const first = firstRunAfter(model, runs, view.from), bar = {};

    drawBars(view, width, runs.stretch.length - first, i => {
        const stretch = runs.stretch[first + i];

        bar.index = first + i;
        bar.start = model.start[stretch];
        bar.ns = model.ns[stretch];
        return bar;
    }, (left, size, index) => {
        const thread = model.threads[runs.thread[index]];

        pen.fillStyle = thread.colour || (thread.colour = nameColour(thread.pair));
        pen.fillRect(x + left, y + 2, Math.max(size, 0.7), ROW - 4);
        if (size > 30) {
            pen.fillStyle = "#fff";
            pen.fillText(fitText(pen, thread.name, size - 6), x + left + 3, y + ROW / 2);
        }
    });
}

function tickStep(span, width) {
    const least = span / Math.max(1, width / 90), power = 10 ** Math.floor(Math.log10(least));

    return [1, 2, 5, 10].map(digit => digit * power).find(step => step >= least) || least;
}

function drawAxis(pen, colours, view, x, width, height) {
    const step = tickStep(view.to - view.from, width);

    pen.fillStyle = colours.page;
    pen.fillRect(0, 0, x + width, AXIS);
    pen.fillStyle = colours.muted;
    pen.strokeStyle = colours.line;
    for (let tick = Math.ceil(view.from / step) * step; tick < view.to; tick += step) {
        const left = x + (tick - view.from) / (view.to - view.from) * width;

        pen.beginPath();
        pen.moveTo(left, 0);
        pen.lineTo(left, height);
        pen.stroke();
        pen.fillText(formatTime(tick), left + 3, AXIS / 2);
    }
}

function stretchInWords(model, thread, stretch) {
    const state = model.states[model.state[stretch]];
    const where = state.kind === "r" && model.cpu[stretch] !== 0xffff ? ` on processor ${model.cpu[stretch]}` : "";

    return `${thread.name || "[no name]"} (process ${thread.pid}, thread ${thread.tid}): ${stateWords(state)}${where}, ` +
        `${formatTime(model.ns[stretch])} (${formatExact(model.ns[stretch], "ns")}) from ` +
        `${formatMoment(model.start[stretch], model.span_ns)}` +
        (model.waker && model.waker[stretch] ? `; ended by ${wakerName(model, model.waker[stretch] - 1)}` : "") +
        stackInWords(model, stretch);
}

// Where a wait was, innermost first: "; in fetch(), called by main()".
function stackInWords(model, stretch) {
    const node = model.place ? model.place[stretch] >> 1 : 0;

    return node ? `; in ${functionsOf(model, node, 6).join(", called by ")}` : "";
}

// All of the time, or that around the trigger of a file of prcb flight.
function firstWindow(model) {
    const trigger = model.trigger;

    if (!trigger)
        return {from: 0, to: model.span_ns || 1};
    const room = Math.max(trigger.to - trigger.from, 1e8);
    return {from: Math.max(0, trigger.from - room), to: Math.min(model.span_ns || 1, trigger.to + room)};
}

function drawTimeline(place, model) {
    if (!model.has_switches || model.fold_ns === null) {
        place.replaceChildren(element("p", {}, model.has_switches
            ? "The timeline was left out: the file's size limit was too low for it (--html-max)."
            : "Context switches were not recorded: there is no timeline."));
        return;
    }
    const view = timelineView;
    if (view.model !== model)
        Object.assign(view, {model, ...firstWindow(model), row: -1, stretch: -1, scroll: 0, pinned: new Set()});
    Object.assign(view, {told: -1, toldRow: -1}); // rows may be others now
    let rows = timelineRows(model);
    const colours = roleColours();
    const info = element("p", {class: "info", role: "status"}, "Drag to select a range of time. Ctrl and the wheel, + and - zoom; " +
        "left and right move. Up and down choose a row, n and p its stretches, f keeps it on top; Enter zooms to the selection.");
    const canvas = element("canvas", {tabindex: "0", role: "application", id: "timeline-canvas",
        "aria-label": `Timeline of ${countOf(rows.length, "row")}: processors, then threads`});
    const spacer = element("div", {class: "spacer"});
    const stage = element("div", {class: "stage"}, canvas, spacer);
    let dragFrom = null, dragTo = null;

    function geometry() {
        const width = stage.clientWidth || 800, label = width < 500 ? 90 : 170;

        return {width, label, bars: Math.max(50, width - label)};
    }

    function momentAt(x) {
        const {label, bars} = geometry();

        return Math.min(view.to, Math.max(view.from, view.from + (x - label) / bars * (view.to - view.from)));
    }

    function draw() {
        const {width, label, bars} = geometry(), total = AXIS + rows.length * ROW;
        const {pen, height, scroll: top} = stageCanvas(stage, spacer, canvas, width, total, 120, colours.page);

        drawAxis(pen, colours, view, label, bars, height);
        pen.save();
        pen.beginPath();
        pen.rect(0, AXIS, width, height - AXIS);
        pen.clip();
        for (let i = Math.floor(top / ROW); i < rows.length && AXIS + i * ROW - top < height; i++) {
            const row = rows[i], y = AXIS + i * ROW - top;

            if (i === view.row) {
                pen.fillStyle = colours.raised;
                pen.fillRect(0, y, width, ROW);
            }
            if (row.kind === "processor")
                drawProcessorRow(pen, model, row.runs, view, label, y, bars);
            else
                drawThreadRow(pen, model, colours, row.thread, view, label, y, bars);
            pen.fillStyle = i === view.row ? colours.raised : colours.page;
            pen.fillRect(0, y, label, ROW);
            pen.fillStyle = colours.text;
            pen.fillText(fitText(pen, (view.pinned.has(rowKey(row)) ? "▲ " : "") + row.label, label - 8), 2, y + ROW / 2);
        }
        drawArrow(pen, top, label, bars, height);
        pen.restore();
        const range = dragFrom !== null ? {from: Math.min(dragFrom, dragTo), to: Math.max(dragFrom, dragTo)}
            : selection.from !== null ? selection : null;
        if (range) {
            const x = moment => label + (moment - view.from) / (view.to - view.from) * bars;
            const left = Math.max(label, x(range.from)), right = Math.min(width, x(range.to));

            pen.globalAlpha = 0.18;
            pen.fillStyle = colours.accent;
            if (right > left)
                pen.fillRect(left, 0, right - left, height);
            pen.globalAlpha = 1;
        }
        drawTrigger(pen, label, width, bars, height);
    }

    // Why the file was kept, where the stretch ended.
    function drawTrigger(pen, label, width, bars, height) {
        const trigger = model.trigger;

        if (!trigger || trigger.to < view.from || trigger.to > view.to)
            return;
        const x = Math.round(label + (trigger.to - view.from) / (view.to - view.from) * bars), words = "kept: " + trigger.by;

        pen.fillStyle = colours.more;
        pen.fillRect(x - 1, 0, 2, height);
        pen.fillText(fitText(pen, words, bars), Math.max(label, Math.min(x + 4, width - pen.measureText(words).width)), AXIS / 2);
    }

    // From the row of who ended a wait to the wait that is told of.
    function drawArrow(pen, top, label, bars, height) {
        const stretch = view.told, waker = stretch >= 0 && model.waker ? model.waker[stretch] - 1 : -1;
        const by = waker >= 0 ? model.wakers[waker][2] : -1;
        const from = rows.findIndex(row => row.kind === "thread" && row.thread.index === by);
        const moment = stretch >= 0 ? model.start[stretch] + model.ns[stretch] : 0;

        canvas.dataset.arrow = from >= 0 ? by : "";
        if (from < 0 || moment < view.from || moment > view.to || view.toldRow < 0)
            return;
        const x = label + (moment - view.from) / (view.to - view.from) * bars;
        const y = row => AXIS + row * ROW - top + ROW / 2, down = view.toldRow > from ? 1 : -1;

        pen.strokeStyle = pen.fillStyle = colours.text;
        pen.lineWidth = 1.5;
        pen.beginPath();
        pen.moveTo(x, Math.max(AXIS, Math.min(height, y(from))));
        pen.lineTo(x, y(view.toldRow) - down * 5);
        pen.stroke();
        pen.beginPath();
        pen.moveTo(x, y(view.toldRow));
        pen.lineTo(x - 4, y(view.toldRow) - down * 7);
        pen.lineTo(x + 4, y(view.toldRow) - down * 7);
        pen.fill();
    }

    function zoom(factor, around) {
        const span = Math.min(model.span_ns || 1, Math.max(100, (view.to - view.from) * factor));
        const part = (around - view.from) / (view.to - view.from);

        show(around - part * span, span);
    }

    function show(from, span) {
        view.from = Math.min(Math.max(0, from), Math.max(0, model.span_ns - span));
        view.to = view.from + span;
        draw();
    }

    function tell(row, stretch) {
        if (!row || row.kind !== "thread" || stretch >= model.first[row.thread.index + 1])
            return;
        info.textContent = stretchInWords(model, row.thread, stretch);
        if (view.told === stretch)
            return;
        const redraw = model.waker && (model.waker[stretch] || (view.told >= 0 && model.waker[view.told]));
        Object.assign(view, {told: stretch, toldRow: rows.indexOf(row)});
        if (redraw)
            draw();
    }

    // Other rows, after a search or a pin; a row that is still there stays chosen.
    function choose() {
        const row = rows[view.row] && rowKey(rows[view.row]);

        rows = timelineRows(model);
        Object.assign(view, {row: rows.findIndex(one => rowKey(one) === row), told: -1, toldRow: -1});
        draw();
    }

    function pin(row) {
        const key = rows[row] && rowKey(rows[row]);

        if (!rows[row])
            return;
        if (!view.pinned.delete(key))
            view.pinned.add(key);
        choose();
    }

    function at(event) {
        const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;

        return {x, y, row: y < AXIS ? -1 : Math.floor((y - AXIS + stage.scrollTop) / ROW), moment: momentAt(x)};
    }

    function hover(event) {
        const {row, moment} = at(event), line = rows[row];

        if (line && line.kind === "thread") {
            tell(line, firstAfter(model, line.thread.index, moment));
        } else if (line) {
            const place = firstRunAfter(model, line.runs, moment), stretch = line.runs.stretch[place];

            info.textContent = place < line.runs.stretch.length && model.start[stretch] <= moment
                ? stretchInWords(model, model.threads[line.runs.thread[place]], stretch)
                : `processor ${line.runs.cpu}: idle, or a thread that was not recorded`;
        }
    }

    canvas.addEventListener("pointerdown", event => {
        const {x, row, moment} = at(event);

        if (event.button || x < geometry().label) {
            view.row = row;
            draw();
            return;
        }
        canvas.setPointerCapture(event.pointerId);
        dragFrom = dragTo = moment;
        view.row = row;
    });
    canvas.addEventListener("pointermove", event => {
        if (dragFrom === null) {
            hover(event);
            return;
        }
        dragTo = at(event).moment;
        info.textContent = `${formatTime(Math.abs(dragTo - dragFrom))} from ` +
            formatMoment(Math.min(dragFrom, dragTo), model.span_ns);
        draw();
    });
    canvas.addEventListener("pointerup", event => {
        if (dragFrom === null)
            return;
        const from = Math.round(Math.min(dragFrom, dragTo)), to = Math.round(Math.max(dragFrom, dragTo));
        const {bars} = geometry();

        dragFrom = null;
        if ((to - from) / (view.to - view.from) * bars > 3)
            select({from, to});
        else
            hover(event);
        draw();
    });
    canvas.addEventListener("pointercancel", () => {
        dragFrom = null;
        draw();
    });
    canvas.addEventListener("dblclick", event => {
        const {x, row} = at(event);

        if (x < geometry().label)
            pin(row);
    });
    canvas.addEventListener("wheel", event => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey)
            return;
        event.preventDefault();
        if (event.shiftKey)
            show(view.from + (event.deltaY + event.deltaX) / 800 * (view.to - view.from), view.to - view.from);
        else
            zoom(event.deltaY > 0 ? 1.25 : 0.8, momentAt(at(event).x));
    }, {passive: false});
    canvas.addEventListener("keydown", event => {
        const span = view.to - view.from, middle = (view.from + view.to) / 2, row = rows[view.row];
        const keys = {
            "+": () => zoom(0.5, middle), "=": () => zoom(0.5, middle), "-": () => zoom(2, middle),
            ArrowLeft: () => show(view.from - span / 8, span), ArrowRight: () => show(view.from + span / 8, span),
            Home: () => show(0, model.span_ns || 1),
            Enter: () => selection.from !== null && show(selection.from, Math.max(100, selection.to - selection.from)),
            ArrowUp: () => move(-1), ArrowDown: () => move(1), n: () => step(1), p: () => step(-1),
            f: () => pin(view.row),
            s: () => select({from: Math.round(view.from), to: Math.round(view.to)}),
        };
        function move(by) {
            view.row = Math.min(rows.length - 1, Math.max(0, view.row + by));
            view.stretch = -1;
            stage.scrollTop = Math.max(Math.min(stage.scrollTop, view.row * ROW),
                                       AXIS + (view.row + 1) * ROW - canvas.clientHeight);
            info.textContent = rows[view.row] ? rows[view.row].label : "";
            draw();
        }
        function step(by) {
            if (!row || row.kind !== "thread")
                return;
            const first = model.first[row.thread.index], last = model.first[row.thread.index + 1] - 1;

            view.stretch = view.stretch < 0 ? firstAfter(model, row.thread.index, view.from)
                : Math.min(last, Math.max(first, view.stretch + by));
            tell(row, view.stretch);
        }
        if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey)
            return;
        event.preventDefault();
        event.stopPropagation();
        keys[event.key]();
    });
    stage.addEventListener("scroll", () => {
        view.scroll = stage.scrollTop;
        draw();
    });
    place.replaceChildren(
        element("div", {class: "controls"},
            element("button", {type: "button", onclick: () => zoom(0.5, (view.from + view.to) / 2)}, "Zoom in"),
            element("button", {type: "button", onclick: () => zoom(2, (view.from + view.to) / 2)}, "Zoom out"),
            element("button", {type: "button", onclick: () => show(0, model.span_ns || 1)}, "All"),
            element("button", {type: "button", id: "select-view",
                onclick: () => select({from: Math.round(view.from), to: Math.round(view.to)})}, "Select what is shown"),
            element("label", {}, "Rows ", element("input", {
                id: "timeline-search", type: "search", size: 18, value: view.search, placeholder: "name or thread",
                oninput: event => {
                    view.search = event.target.value.trim();
                    choose();
                }}))),
        stage, info, stateLegend(model), model.ends ? element("p", {class: "note"},
            "An interval shows its parts one behind the other: their order in it is not known.") : "");
    watchSize(stage, draw);
    const scroll = view.scroll;
    draw();
    stage.scrollTop = scroll;
    timelineView.draw = draw;
}

function stateLegend(model) {
    const roles = new Map([["run", "running"], ["ready", "ready, no processor"], ["lock", "waits: locks"],
        ["storage", "waits: storage"], ["network", "waits: pipes, sockets, descriptors"],
        ["idle", "waits: asleep, perhaps idle"], ["more", "held back by a quota"], ["other", "waits: other"],
        ["unknown", "not known"]]);
    const used = new Set(model.states.map(stateRole));

    return element("p", {class: "legend"}, ...[...roles].filter(([role]) => used.has(role)).map(([role, words]) => {
        const swatch = element("span", {class: "swatch"});

        swatch.style.background = `var(--${role})`;
        return element("span", {}, swatch, words);
    }));
}

// Redraws when the place changes its width.
function watchSize(place, draw) {
    let width = place.clientWidth;

    new ResizeObserver(() => {
        if (place.clientWidth && place.clientWidth !== width) {
            width = place.clientWidth;
            draw();
        }
    }).observe(place);
}
