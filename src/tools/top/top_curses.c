/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_curses.h"

#ifdef PRCB_STATIC
#include "top_terminfo.h" /* made by the build */
#endif

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

#include "error.h"
#include "now.h"
#include "top_keys.h"

#define TWICE_NS 400000000ull

static SCREEN *screen;
static struct termios saved;
static char leave[256]; /* what a terminal is sent at the end, for handlers of signals */
static size_t leave_length;
static attr_t attributes[TOP_ROLES];
static short pairs[TOP_ROLES];
static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction before[sizeof(fatal) / sizeof(fatal[0])];

/* ---- what roles look like ------------------------------------------------------------ */

static const struct look {
    attr_t mono, colour;
    short front, back;
} looks[TOP_ROLES] = {
    [TOP_PLAIN] = {A_NORMAL, A_NORMAL, -1, -1},
    [TOP_DIM] = {A_DIM, A_DIM, -1, -1},
    [TOP_STRONG] = {A_BOLD, A_BOLD, -1, -1},
    [TOP_BAR] = {A_REVERSE, A_NORMAL, COLOR_BLACK, COLOR_CYAN},
    [TOP_SORTED] = {A_REVERSE | A_BOLD, A_BOLD, COLOR_BLACK, COLOR_WHITE},
    [TOP_MODE] = {A_REVERSE, A_REVERSE, COLOR_GREEN, -1},
    [TOP_PAST] = {A_REVERSE | A_BOLD, A_REVERSE | A_BOLD, COLOR_YELLOW, -1},
    [TOP_CURSOR] = {A_REVERSE, A_REVERSE, -1, -1},
    [TOP_TAGGED] = {A_UNDERLINE, A_BOLD, COLOR_YELLOW, -1},
    [TOP_RUNNING] = {A_BOLD, A_NORMAL, COLOR_GREEN, -1},
    [TOP_READYING] = {A_UNDERLINE, A_NORMAL, COLOR_YELLOW, -1},
    [TOP_HOLDING] = {A_NORMAL, A_NORMAL, COLOR_RED, -1},
    [TOP_IDLING] = {A_DIM, A_NORMAL, COLOR_CYAN, -1}, /* blue on black cannot be read */
    [TOP_WRONG] = {A_BOLD | A_REVERSE, A_BOLD, COLOR_RED, -1},
};

static void make_looks(bool colour)
{
    colour = colour && has_colors() && start_color() == OK;
    if (colour)
        use_default_colors();
    for (int i = 0; i < TOP_ROLES; i++) {
        attributes[i] = colour ? looks[i].colour : looks[i].mono;
        pairs[i] = 0;
        if (colour && (looks[i].front >= 0 || looks[i].back >= 0)) {
            pairs[i] = (short)(i + 1);
            init_pair(pairs[i], looks[i].front, looks[i].back);
        }
    }
}

/* ---- ways out ---------------------------------------------------------------------------- */

static void add_leave(const char *text)
{
    if (text && text != (char *)-1 && leave_length + strlen(text) < sizeof(leave)) {
        memcpy(leave + leave_length, text, strlen(text));
        leave_length += strlen(text);
    }
}

/* Calls only what a handler may call; then raises the signal again, with the action that it had
 * before ours. */
static void on_fatal(int number)
{
    ssize_t written = write(STDOUT_FILENO, leave, leave_length);

    (void)written;
    tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        sigaction(fatal[i], &before[i], NULL);
    raise(number);
}

static void catch_fatal(void)
{
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND};

    leave_length = 0;
    add_leave("\033[?1006l\033[?1000l"); /* the mouse; harmless where there is none */
    add_leave(tigetstr("sgr0"));
    add_leave(tigetstr("cnorm"));
    add_leave(tigetstr("rmkx"));
    add_leave(tigetstr("rmcup"));
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        sigaction(fatal[i], &action, &before[i]);
}

/* A static program may run where no terminal is described: it brings the one that most are like. */
static SCREEN *open_screen(void)
{
    SCREEN *result = newterm(NULL, stdout, stdin);
#ifdef PRCB_STATIC
    if (!result && !setenv("TERMINFO", TOP_TERMINFO, 1))
        result = newterm("xterm-256color", stdout, stdin);
#endif
    return result;
}

int top_curses_open(const struct top_curses_options *options, struct prcb_error *err)
{
    const char *term = getenv("TERM");
    MEVENT unused;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return prcb_fail(err, -ENOTTY, "no terminal: use prcb top -b");
    tcgetattr(STDIN_FILENO, &saved);
    if (!term || !*term || !strcmp(term, "dumb") || !(screen = open_screen()))
        return prcb_fail(err, -ENOTTY,
                         "TERM is %s, a terminal that cannot show a screen: use prcb top -b",
                         term && *term ? term : "not set");
    if (!tigetstr("cup") || tigetstr("cup") == (char *)-1) {
        top_curses_close();
        return prcb_fail(err, -ENOTTY,
                         "TERM is %s, a terminal that cannot move its cursor: use prcb top -b",
                         term);
    }
    catch_fatal();
    set_escdelay(25);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    make_looks(options->colour);
    if (options->mouse) {
        mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
        mouseinterval(0);
        while (getmouse(&unused) == OK)
            ;
    }
    return 0;
}

void top_curses_close(void)
{
    if (!screen)
        return;
    endwin();
    delscreen(screen);
    screen = NULL;
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]) && leave_length; i++)
        sigaction(fatal[i], &before[i], NULL);
}

void top_curses_size(int *ret_width, int *ret_height)
{
    getmaxyx(stdscr, *ret_height, *ret_width);
}

/* ---- drawing ---------------------------------------------------------------------------- */

void top_curses_draw(const struct top_grid *grid, bool anew)
{
    if (anew)
        clearok(stdscr, TRUE);
    for (int y = 0; y < grid->height; y++) {
        for (int x = 0; x < grid->width; x++) {
            const struct top_cell *cell = &grid->cells[y * grid->width + x];
            wchar_t text[2] = {(wchar_t)cell->code, 0};
            cchar_t shown;

            if (!cell->code)
                continue;
            setcchar(&shown, text, attributes[cell->role], pairs[cell->role], NULL);
            mvadd_wch(y, x, &shown);
        }
    }
    refresh();
}

/* ---- events --------------------------------------------------------------------------------- */

static struct top_event mouse_event(void)
{
    static uint64_t last_ns;
    static int last_y = -1, last_x = -1;
    struct top_event event = {.kind = TOP_EVENT_NONE};
    MEVENT mouse;
    uint64_t now;

    if (getmouse(&mouse) != OK)
        return event;
    event.y = mouse.y;
    event.x = mouse.x;
    if (mouse.bstate & (BUTTON4_PRESSED | BUTTON5_PRESSED)) {
        event.kind = TOP_EVENT_WHEEL;
        event.turn = mouse.bstate & BUTTON4_PRESSED ? -1 : 1;
    } else if (mouse.bstate & BUTTON1_PRESSED) {
        now = now_ns();
        event.kind = TOP_EVENT_CLICK;
        event.twice = now - last_ns < TWICE_NS && mouse.y == last_y && mouse.x == last_x;
        last_ns = event.twice ? 0 : now;
        last_y = mouse.y;
        last_x = mouse.x;
    }
    return event;
}

static uint32_t key_number(int key)
{
    static const struct {
        int curses;
        uint32_t key;
    } keys[] = {
        {KEY_UP, TOP_KEY_UP},       {KEY_DOWN, TOP_KEY_DOWN},
        {KEY_LEFT, TOP_KEY_LEFT},   {KEY_RIGHT, TOP_KEY_RIGHT},
        {KEY_PPAGE, TOP_KEY_PGUP},  {KEY_NPAGE, TOP_KEY_PGDN},
        {KEY_HOME, TOP_KEY_HOME},   {KEY_END, TOP_KEY_END},
        {KEY_ENTER, TOP_KEY_ENTER}, {KEY_BACKSPACE, TOP_KEY_BACKSPACE},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].curses == key)
            return keys[i].key;
    }
    return key >= KEY_F(1) && key <= KEY_F(12) ? TOP_KEY_F1 + (uint32_t)(key - KEY_F(1)) : 0;
}

static uint32_t character_key(wint_t code)
{
    switch (code) {
    case '\r':
    case '\n':
        return TOP_KEY_ENTER;
    case '\t':
        return TOP_KEY_TAB;
    case 27:
        return TOP_KEY_ESC;
    case 8:
    case 127:
        return TOP_KEY_BACKSPACE;
    default:
        return (uint32_t)code;
    }
}

struct top_event top_curses_event(void)
{
    struct top_event event = {.kind = TOP_EVENT_NONE};
    wint_t code;
    int result = get_wch(&code);

    if (result == ERR)
        return event;
    if (result == KEY_CODE_YES && code == KEY_MOUSE) {
        event = mouse_event();
        if (event.kind == TOP_EVENT_NONE)
            event = (struct top_event){.kind = TOP_EVENT_KEY}; /* of a key that does nothing */
        return event;
    }
    if (result == KEY_CODE_YES && code == KEY_RESIZE)
        return (struct top_event){.kind = TOP_EVENT_RESIZE};
    event.kind = TOP_EVENT_KEY;
    event.key = result == KEY_CODE_YES ? key_number((int)code) : character_key(code);
    return event;
}
