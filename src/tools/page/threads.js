// SPDX-License-Identifier: BSD-2-Clause
// Threads, alone or by process or name; an opened row says why, where and by whom.

const threadView = {group: "thread", filter: "", table: {}};

function groupKey(thread) {
    return threadView.group === "thread" ? thread.index : threadView.group === "pid" ? thread.pid : thread.pair;
}

function matchesFilter(thread, filter) {
    return !filter || thread.name.toLowerCase().includes(filter) || String(thread.tid) === filter ||
        String(thread.pid) === filter;
}

// One row a group: its threads, and sums. There may be 100,000: no row holds more than it shows.
function threadRows(model) {
    const groups = new Map(), sampled = samplesOf(model), sums = sumsOf(model), filter = threadView.filter.toLowerCase();

    for (const thread of selectedThreads(model)) {
        if (!matchesFilter(thread, filter))
            continue;
        const key = groupKey(thread);
        if (!groups.has(key))
            groups.set(key, []);
        groups.get(key).push(thread);
    }
    return [...groups].map(([key, threads]) => {
        const first = threads[0];
        const add = column => threads.reduce((sum, thread) => sum + column[thread.index], 0);

        return {key, threads, pid: first.pid, tid: first.tid, run: add(sums.run), ready: add(sums.ready), wait: add(sums.wait),
                name: threadView.group === "pair" ? first.pair : first.name,
                samples: add(sampled.count), weight: add(sampled.weight),
                cause: longestWait(model, threads)};
    });
}

function whyPane(model, row) {
    return element("div", {}, element("h3", {}, "Why"),
        model.has_switches ? causeTable(model, totalsOf(model, row.threads))
                           : element("p", {class: "note"}, "Context switches were not recorded."));
}

function wherePane(model, row) {
    const functions = functionRows(model, {kind: threadView.group, key: row.key});

    return element("div", {}, model.ends ? "" : element("h3", {}, "Where it ran"),
        model.ends ? "" : functions.length ? makeTable({
            rows: functions.slice(0, 10), sort: 1,
            columns: [{title: "Function", value: f => f.name}, weightColumn(model, "Self", f => f.self),
                      shareColumn("Share", f => f.self, row.weight)],
        }) : element("p", {class: "note"}, "No samples."),
        model.has_wait_stacks ? waitedPane(model, row) : "");
}

// The innermost functions of a stack: "read < load < main".
function stackWords(model, node) {
    const names = [];

    for (; node && names.length < 4; node = model.caller[node])
        names.push(functionName(model, model.nodeFunction[node]));
    return names.join(" < ") + (node ? " < ..." : "");
}

function waitedPane(model, row) {
    const stacks = new Map();
    let total = 0, known = 0;

    eachWait(model, {kind: threadView.group, key: row.key}, (state, node, idle, word, ns) => {
        const cause = stateLabel(model.states[state]), key = cause + "\n" + node + "\n" + (node ? "" : word);

        if (!stacks.has(key))
            stacks.set(key, {cause, ns: 0, where: node ? stackWords(model, node) : word,
                             word: node ? word + (idle ? (word ? ", " : "") + "idle by design" : "") : ""});
        stacks.get(key).ns += ns;
        total += ns;
        known += node ? ns : 0;
    });
    const rows = [...stacks.values()].sort((a, b) => b.ns - a.ns);
    return element("div", {class: "waited"}, element("h3", {}, `Where it waited: stacks of ${formatShare(known, total)} are known`),
        makeTable({rows, sort: 3, columns: [
            {title: "Cause", value: r => r.cause}, {title: "Stack", value: r => r.where}, {title: "What it is", value: r => r.word},
            timeColumn("Time", r => r.ns), shareColumn("Share", r => r.ns, total)]}));
}

function byWhomPane(model, row) {
    const instead = ranInstead(model, row.threads);

    if (!instead) {
        return element("div", {}, element("h3", {}, "By whom"), element("p", {class: "note"},
            model.ends ? "Not in a live page: prcb why and prcb top --by-whom say it, and prcb record."
            : model.has_switches ? "The timeline is folded: who ran instead is not known."
                               : "Context switches were not recorded."));
    }
    const rows = instead.rows.slice(0, 10).map(({thread, ns}) =>
        ({name: `${thread.name || "[no name]"} (${thread.tid})`, ns}));
    const more = instead.rows.slice(10).reduce((sum, {ns}) => sum + ns, 0);
    if (more)
        rows.push({name: `[${instead.rows.length - 10} more]`, ns: more});
    rows.push({name: "[nobody that was recorded]", ns: instead.rest});
    return element("div", {}, element("h3", {}, "By whom: who ran on its processor while it was ready"),
        makeTable({rows, sort: 1, columns: [{title: "Thread", value: r => r.name}, timeColumn("Time", r => r.ns),
                                            shareColumn("Share", r => r.ns, instead.total)]}));
}

// Who ended its waits: thread, timer, interrupt.
function wakersPane(model, row) {
    const rows = new Map();
    let total = 0;
    const known = eachWake(model, {kind: threadView.group, key: row.key}, (state, waker, ns, count) => {
        const name = wakerName(model, waker);

        if (!rows.has(name))
            rows.set(name, {name, ns: 0, count: 0});
        rows.get(name).ns += ns;
        rows.get(name).count += count;
        total += ns;
    });

    if (!known)
        return element("div", {}, element("h3", {}, "By whom: who ended its waits"), element("p", {class: "note"},
            model.has_wakers ? "Of a folded timeline it is known for the whole time only." : "Wakers were not recorded."));
    return element("div", {class: "wakers"}, element("h3", {}, "By whom: who ended its waits"),
        makeTable({rows: [...rows.values()], sort: 1, columns: [
            {title: "Woken by", value: r => r.name}, timeColumn("Waited", r => r.ns), shareColumn("Share", r => r.ns, total),
            countColumn("Times", r => r.count)]}));
}

function threadDetail(model, row) {
    return element("div", {},
        element("p", {class: "controls"},
            element("button", {type: "button", onclick: () => select({only: {kind: threadView.group, key: row.key}})},
                    "Show only this in all views")),
        element("div", {class: "panes"}, whyPane(model, row), wherePane(model, row), byWhomPane(model, row),
                                         model.ends ? "" : wakersPane(model, row)));
}

function drawThreads(place, model) {
    const range = rangeOf(model), span = range.to - range.from;
    const table = element("div", {id: "thread-table"});
    const fill = () => {
        const rows = threadRows(model);

        table.replaceChildren(element("p", {class: "note"}, countOf(rows.length, "row")), makeTable({
            rows, sort: model.has_switches ? 3 : 7, memory: model.ends ? threadView.table : undefined,
            key: row => String(row.key), label: row => row.name,
            detail: row => threadDetail(model, row),
            columns: [
                {title: "Name", value: row => row.name},
                extra(idColumn("Process", row => row.pid)),
                threadView.group === "thread" ? idColumn("Thread", row => row.tid)
                                              : countColumn("Threads", row => row.threads.length),
                timeColumn("Running", row => row.run),
                timeColumn("Ready", row => row.ready, "could run and had no processor"),
                timeColumn("Waiting", row => row.wait),
                {title: "Longest cause of waiting", value: row => row.cause ? stateLabel(model.states[row.cause.state]) : "",
                 show: row => row.cause ? element("span", {}, stateSwatch(model.states[row.cause.state]),
                     `${stateLabel(model.states[row.cause.state])} ${formatTime(row.cause.ns)}`) : "-"},
                ...(model.ends ? [] : [extra(weightColumn(model, "Sampled", row => row.weight)),
                                       extra(countColumn("Samples", row => row.samples))]),
                shareColumn("Processor", row => row.run, span, "running, of one processor's time"),
            ],
        }));
    };

    place.replaceChildren(element("div", {class: "controls"},
        element("label", {}, "Group by ", element("select", {id: "group", onchange: event => {
            threadView.group = event.target.value;
            threadView.table.open = new Set();
            fill();
        }}, ...[["thread", "thread"], ["pid", "process"], ["pair", "name without digits"]].map(([value, words]) =>
            element("option", {value, selected: threadView.group === value}, words)))),
        element("label", {}, "Filter ", element("input", {
            id: "filter", type: "search", size: 24, value: threadView.filter, placeholder: "name, process or thread",
            oninput: event => {
                threadView.filter = event.target.value.trim();
                fill();
            }}))), table);
    fill();
}
