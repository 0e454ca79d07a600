// SPDX-License-Identifier: BSD-2-Clause
// The recording in words, and where the threads' time went.

const summaryView = {causes: {}, held: {}, holders: {}, spans: {}};

function stateSwatch(state) {
    const swatch = element("span", {class: "swatch"});

    swatch.style.background = `var(--${stateRole(state)})`;
    return swatch;
}

function causeTable(model, totals, memory) {
    const all = totals.run + totals.ready + totals.wait;

    return makeTable({
        rows: totals.states, sort: 2, memory,
        columns: [
            {title: "State", value: row => stateLabel(model.states[row.state]),
             show: row => element("span", {}, stateSwatch(model.states[row.state]),
                                  stateLabel(model.states[row.state]))},
            {title: "Meaning", extra: true, value: row => stateWords(model.states[row.state])},
            timeColumn("Time", row => row.ns),
            shareColumn("Share", row => row.ns, all, "of the threads' time"),
            countColumn("Count", row => row.count),
            ...(model.ends ? [] : [extra(timeColumn("Mean", row => row.ns / row.count))]),
            ...(model.ends ? [] : [extra(timeColumn("Longest", row => row.longest))]),
        ],
    });
}

function stateBar(model, totals) {
    const all = totals.run + totals.ready + totals.wait;
    const bar = element("div", {class: "bar", role: "img",
        "aria-label": totals.states.slice(0, 5).map(row =>
            stateLabel(model.states[row.state]) + " " + formatShare(row.ns, all)).join(", ")});

    for (const row of totals.states) {
        const part = element("span", {title: stateLabel(model.states[row.state]) + ": " +
            formatTime(row.ns) + ", " + formatShare(row.ns, all)});

        part.style.flex = `${row.ns / (all || 1)} 0 0`;
        part.style.background = `var(--${stateRole(model.states[row.state])})`;
        bar.append(part);
    }
    return bar;
}

// "waiting for a lock or condition (futex): 42 % (1.2 s)" of the longest causes.
function waitsInWords(model, totals) {
    const waits = totals.states.filter(row => model.states[row.state].kind === "w").slice(0, 3);

    return waits.map(row => `${stateWords(model.states[row.state])}: ` +
        `${formatShare(row.ns, totals.wait)} (${formatTime(row.ns)})`).join("; ");
}

function wordsOf(model, threads, totals, span) {
    const all = totals.run + totals.ready + totals.wait, words = [];
    const processes = new Set(threads.map(thread => thread.pid)).size;

    words.push(`${countOf(threads.length, "thread")} of ${countOf(processes, "process", "processes")} ` +
               `in ${formatTime(span)}.`);
    if (!model.has_switches) {
        words.push("Context switches were not recorded: there are samples only.");
        return words;
    }
    words.push(`They ran ${formatShare(totals.run, all)} of their time (${formatTime(totals.run)}), were ready ` +
               `and had no processor ${formatShare(totals.ready, all)} (${formatTime(totals.ready)}), and ` +
               `waited ${formatShare(totals.wait, all)} (${formatTime(totals.wait)}).`);
    if (totals.wait)
        words.push(sentence(waitsInWords(model, totals)) + " of the waiting.");
    if (model.has_wait_stacks && totals.wait) {
        let known = 0, idle = 0;

        eachWait(model, selection.only, (state, node, isIdle, word, ns) => {
            known += node ? ns : 0;
            idle += isIdle ? ns : 0;
        });
        words.push(`Where they waited is known for ${formatShare(known, totals.wait)} of the waiting; ` +
                   `${formatShare(idle, totals.wait)} of it is idling by design.`);
    }
    return words;
}

// Waits that may be for work weigh one part in so many, as in prcb why.
const eitherPart = 8;

// Who waited where for what, that neither idles by design nor waits in a way in which threads may idle (asleep, in
// epoll). What may be for work, by its stack or for lack of one, counts little: by what is left, the most first.
function heldUp(model) {
    const groups = new Map(), idles = model.states.map(state => stateRole(state) === "idle");

    eachWait(model, selection.only, (state, node, idle, word, ns, thread) => {
        if (idle || idles[state])
            return;
        const key = `${thread.pair} ${state} ${node}`;

        if (!groups.has(key)) {
            const either = !model.states[state].held && (!node || model.either.has(node));

            groups.set(key, {name: thread.name || "[no name]", pid: thread.pid, state, node, either, ns: 0, threads: new Set()});
        }
        const group = groups.get(key);
        group.ns += ns;
        group.threads.add(thread.index);
    });
    for (const group of groups.values())
        group.score = group.either ? group.ns / eitherPart : group.ns;
    return [...groups.values()].sort((a, b) => b.score - a.score || b.ns - a.ns);
}

// Who ended the waits for locks, for so long as these were waited for: who released a lock held it until then.
function lockHolders(model) {
    const by = new Map();

    eachWake(model, selection.only, (state, waker, ns, count) => {
        if (stateRole(model.states[state]) !== "lock")
            return;
        const row = by.get(waker) || {waker, ns: 0, count: 0};

        row.ns += ns;
        row.count += count;
        by.set(waker, row);
    });
    return [...by.values()].filter(row => row.ns > 0).sort((a, b) => b.ns - a.ns);
}

function nothingHolds(totals, either) {
    const all = totals.run + totals.ready + totals.wait;

    return [`Nothing is known to have held these threads up: what they did not run (${formatShare(totals.run, all)} of their ` +
            "time) they slept, or waited as idle threads do" +
            (either ? `, or in ways that may be idling (${formatShare(either, all)}).` : ".")];
}

function saysReady(model, totals, sure) {
    const names = new Map();

    for (const thread of selectedThreads(model))
        names.set(thread.pair, (names.get(thread.pair) || 0) + sumsOf(model).ready[thread.index]);
    const [name, ns] = [...names].reduce((best, one) => one[1] > best[1] ? one : best);
    return [`${formatShare(totals.ready, sure)} of the time in which they were held up they were ready and had no processor `,
            `(${formatTime(totals.ready)}); most of all `, named(name || "[no name]"), ` (${formatTime(ns)}).`];
}

// The first sentence: what kept them from running most. The rules are those of prcb why's: what idles by design is never
// it, and what may be idling only where nothing else is.
function verdictOf(model, totals, groups, holders) {
    const sumOf = either => groups.reduce((sum, group) => sum + (group.either === either ? group.ns : 0), 0);
    const most = groups[0], sure = totals.ready + sumOf(false), either = sumOf(true);
    const all = totals.run + totals.ready + totals.wait, score = sure + either / eitherPart;

    if (totals.run > 2 * score && totals.run >= all / 20)
        return [`They ran rather than waited: ${formatShare(totals.run, totals.run + sure)} of the time that they did not idle ` +
                `was spent on a processor (${formatTime(totals.run)}).`];
    if (!score || (score < all / 50 && totals.run + score < all / 10))
        return nothingHolds(totals, either);
    if (totals.ready >= (most ? most.score : 0))
        return saysReady(model, totals, sure);
    const holder = stateRole(model.states[most.state]) === "lock" && holders.find(row => row.waker >= 0);
    const where = most.node ? [" in ", named(functionsOf(model, most.node, 2).join(", called by "))] : [];

    return [`${formatShare(most.ns, most.either ? sure + either : sure)} of the time in which they were held up` +
            `${most.either ? ", or idled" : ""}: ${countOf(most.threads.size, "thread")} named `,
            named(most.name), ` (process ${most.pid}), ${stateWords(model.states[most.state])}`, ...where, ".",
            ...(holder ? [" Most waits for locks were ended by ", named(wakerName(model, holder.waker)), "."] : [])];
}

function heldUpTable(model, totals, groups) {
    const where = row => functionsOf(model, row.node, 3).join(" ← ");

    return makeTable({
        rows: groups, sort: 4, shown: 8, memory: summaryView.held, columns: [
            {title: "Who", value: row => row.name, show: row => named(row.name)},
            extra(idColumn("Process", row => row.pid)),
            {title: "For", value: row => stateLabel(model.states[row.state]),
             show: row => element("span", {}, stateSwatch(model.states[row.state]), stateLabel(model.states[row.state]),
                                  row.either ? element("span", {class: "note"}, " (may be idle)") : "")},
            {title: "Where", value: where, show: row => row.node ? named(where(row)) : element("span", {class: "note"}, "not known")},
            timeColumn("Time", row => row.ns),
            shareColumn("Share", row => row.ns, totals.wait, "of the waiting"),
            countColumn("Threads", row => row.threads.size),
        ],
    });
}

function holderTable(model, holders) {
    return makeTable({
        rows: holders, sort: 1, shown: 5, memory: summaryView.holders, columns: [
            {title: "Ended by", value: row => wakerName(model, row.waker), show: row => named(wakerName(model, row.waker))},
            timeColumn("Time", row => row.ns),
            countColumn("Waits", row => row.count),
        ],
    });
}

// What spans of traces waited for, of the whole recording.
function spansOf(model) {
    return (model.ends ? [] : model.spans).map(([span, trace, thread, state, node, ns, count]) =>
        ({span, trace, thread: model.threads[thread], state, node, ns, count}))
        .filter(row => isSelected(row.thread, selection.only));
}

function spanTable(model, rows) {
    const where = row => functionsOf(model, row.node, 3).join(" ← ");

    return makeTable({
        rows, sort: 5, shown: 8, memory: summaryView.spans, columns: [
            {title: "Span", value: row => row.span, show: row => named(row.span)},
            extra({title: "Trace", value: row => row.trace, show: row => named(row.trace)}),
            extra({title: "Who", value: row => row.thread.name, show: row => named(row.thread.name || "[no name]")}),
            {title: "For", value: row => stateLabel(model.states[row.state]),
             show: row => element("span", {}, stateSwatch(model.states[row.state]), stateLabel(model.states[row.state]))},
            {title: "Where", value: where, show: row => row.node ? named(where(row)) : element("span", {class: "note"}, "not known")},
            timeColumn("Time", row => row.ns),
            extra(countColumn("Waits", row => row.count)),
        ],
    });
}

// What the recording lacks, a sentence each.
function lacksOf(model) {
    if (model.ends)
        return liveLacks(model);
    const facts = model.facts, lacks = [], lossWords = {
        ring: "records of any kind", samples: "samples", switches: "context switches"};

    for (const [what, count] of Object.entries(model.losses))
        lacks.push(`${formatCount(count)} ${lossWords[what] || what} were lost: totals are too low.`);
    if (!model.complete)
        lacks.push("The recording was cut off: what was not written yet is missing.");
    if (facts.switch_source === "perf ring")
        lacks.push("Switches came from the perf ring: causes of waits are not known, and time ready after a " +
                   "wakeup counts as waiting.");
    if (facts.processor_times_source && facts.processor_times_source !== "eBPF")
        lacks.push(`Processor times are from ${facts.processor_times_source}: its ticks are their precision.`);
    if (!model.has_stacks)
        lacks.push("Stacks were not recorded (prcb record -g): the flame view has one level.");
    if (model.has_stacks && model.has_switches && !model.has_wait_stacks)
        lacks.push("Stacks of waits were not recorded.");
    if (facts.user_only === "1")
        lacks.push("The kernel could not be sampled.");
    if (model.fold_ns === null)
        lacks.push("The timeline did not fit into the file's size limit and was left out (--html-max): totals are " +
                   "whole, a range of time cannot be selected.");
    else if (model.fold_ns)
        lacks.push(`The timeline is folded to ${formatTime(model.fold_ns)} to fit into the file's size limit ` +
                   "(--html-max): totals are exact, those of a selected range are not.");
    if (model.redacted)
        lacks.push("Names are hashed, the machine and the command are left out (--redact).");
    return lacks;
}

function processorTable(model) {
    const parts = ["user_ns", "kernel_ns", "dpc_ns", "interrupt_ns", "steal_ns", "idle_ns"];
    const shown = parts.filter(part => model.processors.some(row => row[part] !== null));

    return makeTable({
        rows: model.processors, sort: 0, down: false,
        columns: [
            model.ends ? {title: "Processors", value: row => row.cpu} : countColumn("Processor", row => row.cpu),
            ...(model.has_switches && !model.ends ? [timeColumn("Recorded threads", row => row.run_ns)] : []),
            ...shown.map(part => timeColumn(part === "dpc_ns" ? "Softirq" : sentence(part.replace("_ns", "")), row => row[part] || 0)),
            ...(model.ends ? [] : [countColumn("Samples", row => row.samples)]),
        ],
    });
}

function factTable(model) {
    return element("div", {class: "scroll"}, element("table", {}, element("tbody", {},
        ...Object.entries(model.facts).sort().map(([name, value]) =>
            element("tr", {}, element("th", {scope: "row"}, name), element("td", {class: "name"}, named(value)))))));
}

function verdictLine(model) {
    return element("p", {class: "verdict"}, ...verdictOf(model, totalsOf(model, selectedThreads(model)), heldUp(model),
                                                         lockHolders(model)));
}

function drawSummary(place, model) {
    const threads = selectedThreads(model), totals = totalsOf(model, threads), range = rangeOf(model);

    const groups = model.has_switches ? heldUp(model) : [], holders = model.has_switches ? lockHolders(model) : [];
    const spans = spansOf(model);

    place.replaceChildren(
        model.has_switches ? element("p", {id: "verdict", class: "verdict"}, ...verdictOf(model, totals, groups, holders)) : "",
        element("div", {id: "words"}, ...wordsOf(model, threads, totals, range.to - range.from).map(words =>
            element("p", {}, words))),
        ...lacksOf(model).map(words => element("p", {class: "warning"}, words)));
    if (groups.length)
        place.append(element("h2", {}, "Who was held up, and where"), element("div", {id: "held"}, heldUpTable(model, totals, groups)));
    if (holders.length)
        place.append(element("h2", {}, "Who ended waits for locks"), element("div", {id: "holders"}, holderTable(model, holders)));
    if (spans.length)
        place.append(element("h2", {}, "What spans (requests) waited for"), element("div", {id: "spans"}, spanTable(model, spans)));
    if (model.has_switches)
        place.append(element("h2", {}, "Where the threads' time went"), stateBar(model, totals),
                     element("div", {id: "causes"}, causeTable(model, totals, summaryView.causes)));
    place.append(element("h2", {}, "Processors"), element("div", {id: "processors"}, processorTable(model)),
                 element("h2", {}, "About the recording"), factTable(model));
}
