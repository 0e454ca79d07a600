// SPDX-License-Identifier: BSD-2-Clause
// The page: views, the selection, and the part of the address behind the '#', which keeps both.

const views = {summary: drawSummary, threads: drawThreads, timeline: drawTimeline, path: drawPath, flame: drawFlame, tails: drawTails};
// model is the one that is shown; of a difference, base is A and other is B.
const page = {view: "summary", model: null, base: null, other: null, stale: new Set()};

// ---- the address: #view=flame&from=1&to=2&only=pid:12&source=waits

function remember() {
    const words = new URLSearchParams({view: page.view});

    if (selection.from !== null) {
        words.set("from", selection.from);
        words.set("to", selection.to);
    }
    if (selection.only)
        words.set("only", selection.only.kind + ":" + selection.only.key);
    if (flameView.source !== usualSource(page.model))
        words.set("source", flameView.source);
    if ("#" + words !== location.hash)
        history.pushState(null, "", "#" + words);
}

// Why a file of prcb flight was kept: {from, to} of the stretch whose rule it was, or the moment of the question.
function triggerOf(model) {
    const at = Number(model.facts.saved_at_ns) - Number(model.facts.start_ns), ns = Number(model.facts.saved_for_ns) || 0;

    if (!(at >= 0) || at > model.span_ns)
        return null;
    return {from: Math.max(0, at - ns), to: at, by: model.facts.saved_by || "",
            thread: model.threads.find(one => one.tid === Number(model.facts.saved_thread)) || null};
}

// Without words in the address the page opens at the trigger, if there is one: the path of its thread meanwhile.
function openAtTrigger(model) {
    const trigger = model.trigger;

    if (location.hash.length > 1 || page.base || !trigger || model.fold_ns === null)
        return;
    page.view = trigger.thread && model.has_wakers && model.fold_ns === 0 ? "path" : "timeline";
    if (trigger.thread && trigger.to > trigger.from)
        Object.assign(selection, {from: trigger.from, to: trigger.to, only: {kind: "thread", key: trigger.thread.index}});
}

// What the page opens on: where all time went, if there are stacks that tell.
function firstView(model) {
    return !page.base && !model.ends && model.has_switches && model.has_stacks ? "flame" : Object.keys(views)[0];
}

function recall() {
    const words = new URLSearchParams(location.hash.slice(1)), model = page.model;
    const from = Number(words.get("from")), to = Number(words.get("to"));
    const only = /^(thread|pid|pair):(.*)$/s.exec(words.get("only") || "");

    page.view = Object.hasOwn(views, words.get("view") || "") ? words.get("view") : firstView(model);
    selection.from = selection.to = null;
    if (words.has("from") && from >= 0 && to > from && model.fold_ns !== null)
        Object.assign(selection, {from: Math.min(from, model.span_ns), to: Math.min(to, model.span_ns)});
    selection.only = only && {kind: only[1], key: only[1] === "pair" ? only[2] : Number(only[2])};
    if (selection.only && !selectedThreads(model).length)
        selection.only = null;
    openAtTrigger(model);
    flameView.source = Object.hasOwn(flameSources, words.get("source") || "") ? words.get("source")
        : usualSource(model);
}

// ---- the selection

function onlyWords(model, only) {
    const thread = model.threads.find(one => isSelected(one, only));

    return only.kind === "thread" ? `thread ${thread.name || "[no name]"} (${thread.tid})`
        : only.kind === "pid" ? `process ${only.key}` : `threads named ${only.key}`;
}

function showSelection() {
    const line = document.getElementById("selection"), parts = [];

    if (selection.from !== null) {
        parts.push(`${formatTime(selection.to - selection.from)} from ${formatMoment(selection.from, page.model.span_ns)}`,
            element("button", {type: "button", id: "clear-range", onclick: () => select({from: null, to: null})}, "all of the time"));
    }
    if (selection.only) {
        parts.push((parts.length ? "; " : "") + onlyWords(page.model, selection.only),
            element("button", {type: "button", id: "clear-only", onclick: () => select({only: null})}, "all threads"));
    }
    const trigger = page.model.trigger;
    if (trigger && trigger.thread && (selection.from !== trigger.from || selection.to !== trigger.to)) {
        parts.push((parts.length ? "; " : "all; "), element("button", {type: "button", id: "to-trigger", onclick: () => select(
            {from: trigger.from, to: trigger.to, only: {kind: "thread", key: trigger.thread.index}})}, "select the trigger"));
    }
    line.hidden = !parts.length;
    line.replaceChildren("Selected: ", ...parts);
}

function select(change) {
    Object.assign(selection, change);
    if (selection.from !== null && page.model.ends)
        Object.assign(selection, wholeIntervals(page.model, selection));
    remember();
    redraw();
}

// ---- views

function drawView() {
    for (const name of Object.keys(views))
        document.getElementById(name).hidden = name !== page.view;
    for (const button of document.querySelectorAll("#tabs button"))
        button.dataset.view === page.view ? button.setAttribute("aria-current", "page") : button.removeAttribute("aria-current");
    if (!page.stale.delete(page.view))
        return;
    // A view that is drawn anew has new elements: what had the focus keeps it, or keys would do nothing.
    const place = document.getElementById(page.view), focus = document.activeElement;
    const id = place.contains(focus) && focus.id;
    views[page.view](place, page.model);
    const again = id && document.getElementById(id);
    if (again && again !== document.activeElement)
        again.focus({preventScroll: true});
}

function redraw() {
    page.stale = new Set(Object.keys(views));
    showSelection();
    drawView();
}

function chooseView(name) {
    page.view = name;
    remember();
    drawView();
}

function onKey(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);

    if (event.key === "Escape" && typing)
        event.target.blur();
    else if (event.key === "Escape")
        select({from: null, to: null, only: null});
    if (typing || event.ctrlKey || event.metaKey || event.altKey)
        return;
    const name = Object.keys(views)[Number(event.key) - 1];
    if (name)
        chooseView(name);
    const field = document.getElementById({threads: "filter", timeline: "timeline-search"}[page.view] || "search");
    if (event.key === "/" && field) {
        event.preventDefault();
        field.focus();
    }
}

function titles(model) {
    const command = model.facts.command || (model.facts.scope === "system" ? "the whole machine"
        : model.ends ? "live" : "recording");

    document.getElementById("title").replaceChildren("prcb: ", named(command));
    document.title = "prcb: " + command;
    document.getElementById("subtitle").replaceChildren(named(
        [model.facts.host, model.facts.started, model.facts.processor_model, model.facts.kernel && "Linux " + model.facts.kernel,
         `prcb ${model.facts.prcb_version || ""}`].filter(Boolean).join(" · ")));
}

// A difference has one view more, the first.
function addDiff(base, other) {
    page.base = base;
    page.other = other;
    for (const [name, draw] of Object.entries(views)) {
        delete views[name];
        views["diff"] = drawDiff;
        views[name] = draw;
    }
    document.getElementById("tabs").prepend(element("button", {type: "button", "data-view": "diff", "aria-controls": "diff"},
                                                    "Difference"));
    document.querySelector("main").prepend(element("section", {id: "diff", "aria-label": "Difference", hidden: true}));
}

async function start() {
    const live = document.getElementById("live");
    const base = await readModel("base"), model = live ? await liveModel() : await readModel("data");

    for (const one of base ? [base, model] : [model])
        one.threads.forEach((thread, index) => thread.index = index);
    page.model = model;
    model.trigger = live ? null : triggerOf(model);
    document.getElementById("loading").remove();
    titles(model);
    if (base)
        addDiff(base, model);
    recall();
    for (const button of document.querySelectorAll("#tabs button"))
        button.addEventListener("click", () => chooseView(button.dataset.view));
    document.addEventListener("keydown", onKey);
    addEventListener("popstate", () => {
        recall();
        redraw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    if (live)
        showLive();
    redraw();
    document.body.dataset.ready = "1";
}

start().catch(error => {
    const place = document.getElementById("loading") || document.querySelector("main").appendChild(element("p"));

    place.textContent = "The recording cannot be shown: " + error.message;
});
