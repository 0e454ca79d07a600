// SPDX-License-Identifier: BSD-2-Clause
// Threads that wait in functions of their own; each says where by V8's own words, and then nothing moves.
const {Worker, isMainThread, workerData, parentPort} = require("worker_threads");

const word = new Int32Array(new SharedArrayBuffer(4));


// A name that is computed, and "eval", are no names of the function itself.
Error.prepareStackTrace = (_, sites) => sites.map((site) => [
    (site.getFunctionName() || "").replace(/^(\[.*|eval)$/, "") || "(anonymous)",
    site.getFileName() || (site.getEvalOrigin() ? "(eval)" : "(built in)"),
    site.getLineNumber() || 1,
]);
Error.stackTraceLimit = 1000;

function said() {
    parentPort.postMessage(new Error().stack); Atomics.wait(workerData.word, 0, 0);
}

class Cache {
    get(key) {
        return said(key) +
            1;
    }

    static größer() { return new Cache().get("ö"); }
}

function deep(left) {
    if (left == 0)
        return Cache.größer();
    return deep(left - 1) + 1;
}

const programs = {
    deep: () => deep(100),
    callback: () => [1].map(function each() {
        return said();
    }),
    made: () => eval("(function fromText() {\n\n  said(); })()"),
    getter: () => ({get value() { return said(); }}).value,
    sorted() { return [2, 1].sort(() => said()); },
};

if (isMainThread) {
    const names = Object.keys(programs), found = [];
    let left = names.length;

    for (const name of names) {
        new Worker(__filename, {workerData: {name, word}}).on("message", (frames) => {
            found.push(frames);
            if (!--left) {
                console.log(JSON.stringify(found));
                Atomics.wait(word, 0, 0);
            }
        });
    }
} else {
    programs[workerData.name]();
}
