// SPDX-License-Identifier: BSD-2-Clause
// A span of a trace in Rust, by libprcb's C interface: what a request waited for, and its numbers
// where readers outside of the process find them (prcb why --spans).
//     rustc -O span.rs -l prcb      (-L FOLDER where libprcb is not among the system's libraries)
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::{marker::PhantomData, mem, ptr, thread, time::Duration};

const CAUSES: usize = 48; // PRCB_CAUSE_MAX

#[repr(C)]
pub struct SpanId {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub flags: u8,
    pub pad: [u8; 7],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Wait {
    pub count: u64,
    pub ns: u64,
}
/// struct prcb_account as far as it is of use here: the library fills what `size` has room for.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Account {
    size: usize,
    pub present: u64,
    pub key: u64,
    pub tier: u32,
    pub flags: u32,
    pub tid: i32,
    pub pid: i32,
    pub comm: [u8; 16],
    pub wall_ns: u64,
    pub run_ns: u64,
    pub ready_ns: u64,
    pub wait_ns: u64,
    pub switches: u64,
    pub others: [u64; 4],
    pub open: Wait,
    pub last: [u32; 2],
    pub waits: [Wait; CAUSES],
}
#[link(name = "prcb")]
extern "C" {
    fn prcb_open(options: *const c_void, ret: *mut *mut c_void, err: *mut c_void) -> i32;
    fn prcb_close(session: *mut c_void);
    fn prcb_thread_open_self(session: *mut c_void, ret: *mut *mut c_void, err: *mut c_void) -> i32;
    fn prcb_thread_close(thread: *mut c_void);
    fn prcb_thread_read(thread: *mut c_void, ret: *mut Account) -> i32;
    fn prcb_account_sub(later: *const Account, earlier: *const Account, ret: *mut Account);
    fn prcb_cause_info(cause: u32) -> *const *const c_char; // its first member is the name
    fn prcb_span_publish(id: *const SpanId) -> i32;
}

/// The session of a program, and the account of one thread, which alone may use it.
pub struct Own {
    session: *mut c_void,
    thread: *mut c_void,
}
impl Own {
    pub fn open() -> Option<Own> {
        let mut own = Own { session: ptr::null_mut(), thread: ptr::null_mut() };
        let good = unsafe {
            prcb_open(ptr::null(), &mut own.session, ptr::null_mut()) == 0
                && prcb_thread_open_self(own.session, &mut own.thread, ptr::null_mut()) == 0
        };
        good.then_some(own)
    }
    fn read(&self) -> Account {
        let mut account: Account = unsafe { mem::zeroed() };
        account.size = mem::size_of::<Account>();
        unsafe { prcb_thread_read(self.thread, &mut account) };
        account
    }
}
impl Drop for Own {
    fn drop(&mut self) {
        unsafe {
            prcb_thread_close(self.thread);
            prcb_close(self.session);
        }
    }
}

/// From its creation to its end this is the thread's current span. Spans do not nest here.
pub struct Span<'a> {
    own: &'a Own,
    begin: Account,
    _of_this_thread: PhantomData<*const ()>,
}
impl<'a> Span<'a> {
    pub fn begin(own: &'a Own, id: &SpanId) -> Span<'a> {
        let begin = own.read();
        unsafe { prcb_span_publish(id) };
        Span { own, begin, _of_this_thread: PhantomData }
    }
    /// What the thread did since the beginning.
    pub fn figures(&self) -> Account {
        let mut later = self.own.read();
        unsafe { prcb_account_sub(&later, &self.begin, &mut later) };
        later
    }
}
impl Drop for Span<'_> {
    fn drop(&mut self) {
        unsafe { prcb_span_publish(ptr::null()) };
    }
}

fn main() {
    let own = Own::open().expect("no session: prcb doctor says why");
    let id = SpanId { trace_id: [7; 16], span_id: [7; 8], flags: 1, pad: [0; 7] };
    let span = Span::begin(&own, &id);
    thread::sleep(Duration::from_millis(400));
    let did = span.figures();
    drop(span);
    println!("ran {} ns, ready {} ns, waited {} ns", did.run_ns, did.ready_ns, did.wait_ns);
    for (cause, wait) in did.waits.iter().enumerate().filter(|(_, wait)| wait.ns > 0) {
        let name = unsafe { CStr::from_ptr(*prcb_cause_info(cause as u32)) };
        println!("  {} {} ns", name.to_string_lossy(), wait.ns);
    }
}
