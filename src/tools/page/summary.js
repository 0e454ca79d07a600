// SPDX-License-Identifier: BSD-2-Clause
// The recording in words, and where the threads' time went.

const summaryView = {causes: {}};

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
            {title: "Meaning", value: row => stateWords(model.states[row.state])},
            timeColumn("Time", row => row.ns),
            shareColumn("Share", row => row.ns, all, "of the threads' time"),
            countColumn("Count", row => row.count),
            ...(model.ends ? [] : [timeColumn("Mean", row => row.ns / row.count)]),
            ...(model.ends ? [] : [timeColumn("Longest", row => row.longest)]),
            {title: "NT wait reason", value: row => model.states[row.state].reason || "",
             show: row => model.states[row.state].reason || "-"},
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
            ...shown.map(part => timeColumn(sentence(part.replace("_ns", "")), row => row[part] || 0)),
            ...(model.ends ? [] : [countColumn("Samples", row => row.samples)]),
        ],
    });
}

function factTable(model) {
    return element("div", {class: "scroll"}, element("table", {}, element("tbody", {},
        ...Object.entries(model.facts).sort().map(([name, value]) =>
            element("tr", {}, element("th", {scope: "row"}, name), element("td", {class: "name"}, named(value)))))));
}

function drawSummary(place, model) {
    const threads = selectedThreads(model), totals = totalsOf(model, threads), range = rangeOf(model);

    place.replaceChildren(
        element("div", {id: "words"}, ...wordsOf(model, threads, totals, range.to - range.from).map(words =>
            element("p", {}, words))),
        ...lacksOf(model).map(words => element("p", {class: "warning"}, words)));
    if (model.has_switches)
        place.append(element("h2", {}, "Where the threads' time went"), stateBar(model, totals),
                     element("div", {id: "causes"}, causeTable(model, totals, summaryView.causes)));
    place.append(element("h2", {}, "Processors"), element("div", {id: "processors"}, processorTable(model)),
                 element("h2", {}, "About the recording"), factTable(model));
}
