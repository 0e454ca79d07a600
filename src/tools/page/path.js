// SPDX-License-Identifier: BSD-2-Clause
// The critical path: what a thread's time was spent on, back from the end; a wait that another thread ended is
// that thread's time meanwhile. As prcb report --critical has it.

const PATH_DEPTH = 64; // waits behind each other that are followed
const PATH_STEPS = 500; // that are shown
const pathView = {path: {}, steps: {}};

// The stretch of a thread before a moment; -1: not known.
function stretchBefore(model, thread, moment) {
    const end = model.first[thread + 1], at = firstAfter(model, thread, moment - 1);

    return at < end && model.start[at] < moment ? at : -1;
}

// Steps from the end of the range to its beginning, which are then put in order of time.
function criticalPath(model, thread, range) {
    const frames = [{thread, bound: range.from, wait: null}], steps = [];
    let moment = range.to;

    while (moment > range.from) {
        const frame = frames[frames.length - 1], at = stretchBefore(model, frame.thread, moment);
        const last = model.first[frame.thread + 1] - 1;
        const before = at >= 0 ? model.start[at]
            : last >= model.first[frame.thread] && model.start[last] + model.ns[last] < moment ? model.start[last] + model.ns[last] : 0;
        const start = Math.max(before, frame.bound), waker = at >= 0 && model.waker ? model.waker[at] - 1 : -1;
        const by = waker >= 0 ? model.wakers[waker][2] : -1, until = at >= 0 ? model.start[at] + model.ns[at] : 0;

        if (at >= 0 && model.states[model.state[at]].kind === "w" && by >= 0 && by !== frame.thread &&
            until <= moment && frames.length < PATH_DEPTH && until > start) {
            frames.push({thread: by, bound: start, wait: {thread: frame.thread, state: model.state[at], stretch: at, waker}});
            continue;
        }
        // A worker of the kernel that had no work is not what was waited for: that time stays with who waits.
        const idles = frame.wait && at >= 0 && model.states[model.state[at]].cause === "worker";
        steps.push({from: start, to: moment, ...(idles ? frame.wait : {thread: frame.thread, state: at >= 0 ? model.state[at] : 0,
                    stretch: at, waker}), depth: frames.length - (idles ? 2 : 1)});
        moment = start;
        while (frames.length > 1 && moment <= frames[frames.length - 1].bound)
            frames.pop();
    }
    return steps.reverse();
}

// The thread whose path is shown: the one that is selected, else the selected one that neither idles nor sleeps most.
function pathThread(model) {
    const threads = selectedThreads(model), time = sumsOf(model).run.slice();

    eachWait(model, selection.only, (state, node, idle, word, ns, thread) =>
        !idle && stateRole(model.states[state]) !== "idle" && (time[thread.index] += ns));
    return threads.reduce((best, thread) => !best || time[thread.index] > time[best.index] ? thread : best, null);
}

function stepPlace(model, step) {
    const node = step.stretch >= 0 && model.place ? model.place[step.stretch] >> 1 : 0;

    return node ? functionsOf(model, node, 2).join(" ← ") : "";
}

function pathSums(model, steps) {
    const sums = new Map();

    for (const step of steps) {
        const place = stepPlace(model, step), key = `${step.thread} ${step.state} ${place}`;
        const row = sums.get(key) || {...step, place, ns: 0, count: 0};

        row.ns += step.to - step.from;
        row.count++;
        sums.set(key, row);
    }
    return [...sums.values()];
}

function drawPath(place, model) {
    if (!model.has_switches || model.fold_ns !== 0 || !model.has_wakers || model.ends) {
        place.replaceChildren(element("p", {}, model.ends ? "A live page knows sums of intervals: prcb record keeps who ended which wait."
            : "There is no path: it needs every context switch and who ended each wait, of a timeline that is not folded."));
        return;
    }
    const thread = pathThread(model), range = rangeOf(model);
    if (!thread) {
        place.replaceChildren(element("p", {}, "Nothing is selected."));
        return;
    }
    const steps = criticalPath(model, thread.index, range), span = range.to - range.from;
    const name = row => {
        const one = model.threads[row.thread];

        return `${one.name || "[no name]"} (${one.tid})`;
    };
    const columns = time => [
        {title: "Thread", value: name, show: row => named(name(row))},
        {title: "State", value: row => stateLabel(model.states[row.state]),
         show: row => element("span", {}, stateSwatch(model.states[row.state]), stateLabel(model.states[row.state]))},
        {title: "Where", value: row => row.place, show: row => row.place ? named(row.place) : ""},
        timeColumn("Time", time),
    ];

    place.replaceChildren(
        element("p", {}, "What the time of ", named(name({thread: thread.index})), ` was spent on, ${formatTime(span)}: while it waited for ` +
            "another thread, what that one did."),
        element("p", {class: "note"}, selection.only && selection.only.kind === "thread" ? "" :
            "This is the busiest thread that is selected; select another one in Threads."),
        element("div", {id: "path-sums"}, makeTable({rows: pathSums(model, steps), sort: 3, memory: pathView.path, columns: [
            ...columns(row => row.ns), shareColumn("Share", row => row.ns, span, "of the path"),
            countColumn("Steps", row => row.count)]})),
        element("h2", {}, "Step by step"),
        element("p", {class: "note"}, steps.length > PATH_STEPS ? `The first ${PATH_STEPS} of ${formatCount(steps.length)} steps; select a ` +
            "shorter range for others." : ""),
        element("div", {id: "path-steps"}, makeTable({
            rows: steps.slice(0, PATH_STEPS).map(step => ({...step, place: stepPlace(model, step)})), sort: 0, down: false,
            memory: pathView.steps,
            columns: [timeColumn("From", row => row.from), ...columns(row => row.to - row.from),
                      countColumn("Behind", row => row.depth)]})));
}
