// SPDX-License-Identifier: BSD-2-Clause
// From the bytes in the page to arrays (docs/page.md).

function bytesOfBase64(text) {
    const binary = atob(text), bytes = new Uint8Array(binary.length);

    for (let i = 0; i < bytes.length; i++)
        bytes[i] = binary.charCodeAt(i);
    return bytes;
}

async function inflate(packed) {
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));

    return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Unsigned numbers of seven bits a byte. Sums of bytes stay exact up to 2^53.
function readNumbers(bytes, at, count, Type) {
    const numbers = new Type(count);

    for (let i = 0; i < count; i++) {
        let byte = bytes[at++], value = byte & 127;

        for (let scale = 128; byte > 127; scale *= 128) {
            byte = bytes[at++];
            value += (byte & 127) * scale;
        }
        numbers[i] = value;
    }
    return numbers;
}

const columnTypes = {
    thread_stretches: Uint32Array, stretch_state: Uint16Array, stretch_ns: Float64Array,
    stretch_cpu: Uint16Array, run_thread: Uint32Array, node_caller: Uint32Array,
    node_function: Uint32Array, sample_time: Float64Array, sample_thread: Uint32Array,
    sample_node: Uint32Array, sample_count: Float64Array, sample_weight: Float64Array,
    stretch_place: Uint32Array, wait_thread: Uint32Array, wait_state: Uint16Array, wait_place: Uint32Array,
    stretch_waker: Uint32Array, wake_thread: Uint32Array, wake_state: Uint16Array, wake_waker: Uint32Array,
    tail_state: Uint16Array, tail_bucket: Uint16Array, tail_count: Float64Array, wake_ns: Float64Array, wake_count: Float64Array, wait_word: Uint16Array, wait_ns: Float64Array, wait_count: Float64Array,
};

function readColumns(head, bytes, at) {
    const columns = {};

    for (const [name, count, length] of head.columns) {
        if (columnTypes[name])
            columns[name] = readNumbers(bytes, at, count, columnTypes[name]);
        at += length;
    }
    return columns;
}

// Stretches: of thread t those from first[t] to first[t + 1], one beginning where the one before
// ended.
function placeStretches(model, columns) {
    const total = columns.stretch_state.length, threads = model.threads.length;
    const places = columns.stretch_place, wakers = columns.stretch_waker;
    let at = 0, run = 0, wait = 0;

    model.first = new Uint32Array(threads + 1);
    model.state = columns.stretch_state;
    model.ns = columns.stretch_ns;
    model.start = new Float64Array(total);
    model.cpu = new Uint16Array(total);
    model.place = places && places.length ? new Uint32Array(total) : null;
    model.waker = wakers && wakers.length ? new Uint32Array(total) : null; // index plus one
    for (let thread = 0; thread < threads; thread++) {
        let moment = 0;

        model.first[thread] = at;
        for (const end = at + (columns.thread_stretches[thread] || 0); at < end; at++) {
            model.start[at] = moment;
            moment += model.ns[at];
            if (model.states[model.state[at]].kind === "r")
                model.cpu[at] = columns.stretch_cpu[run++];
            else if (model.states[model.state[at]].kind === "w") {
                if (model.place)
                    model.place[at] = places[wait];
                if (model.waker)
                    model.waker[at] = wakers[wait];
                wait++;
            }
        }
    }
    model.first[threads] = at;
    model.runThread = columns.run_thread;
}

function placeNodes(model, columns) {
    const count = columns.node_caller.length + 1;

    model.caller = new Uint32Array(count);
    model.nodeFunction = new Uint32Array(count);
    for (let node = 1; node < count; node++) {
        model.caller[node] = node - columns.node_caller[node - 1];
        model.nodeFunction[node] = columns.node_function[node - 1];
    }
}

function placeSamples(model, columns) {
    let moment = 0;

    model.sampleTime = columns.sample_time;
    for (let i = 0; i < model.sampleTime.length; i++)
        model.sampleTime[i] = moment += model.sampleTime[i];
    model.sampleThread = columns.sample_thread;
    model.sampleNode = columns.sample_node;
    model.sampleCount = columns.sample_count;
    model.sampleWeight = columns.sample_weight;
}

function modelOf(bytes) {
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    const model = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    const columns = readColumns(model, bytes, 4 + length);

    model.either = new Set(model.either);
    placeStretches(model, columns);
    placeNodes(model, columns);
    placeSamples(model, columns);
    model.waits = !model.has_wait_stacks ? null : {
        thread: columns.wait_thread, state: columns.wait_state, place: columns.wait_place,
        word: columns.wait_word, ns: columns.wait_ns, count: columns.wait_count};
    model.tails = columns.tail_state && columns.tail_state.length
        ? {state: columns.tail_state, bucket: columns.tail_bucket, count: columns.tail_count} : null;
    model.wakes = {thread: columns.wake_thread, state: columns.wake_state, waker: columns.wake_waker,
                   ns: columns.wake_ns, count: columns.wake_count};
    return model;
}

// The model of a data block; null: the page has none of that name.
async function readModel(id) {
    const block = document.getElementById(id);

    if (!block)
        return null;
    if (typeof DecompressionStream === "undefined")
        throw new Error("this browser cannot unpack the recording: it needs Chrome 103, Firefox 113 " +
                        "or Safari 16.4, or later");
    return modelOf(await inflate(bytesOfBase64(block.textContent)));
}
