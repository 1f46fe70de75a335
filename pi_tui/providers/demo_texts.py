"""What the demo model says. Words only; `demo_tour` decides which of them and when.

The texts are Markdown. Every text that could be taken for the work of a language model says that it
is not. Parts in braces are filled in with facts from the user's folder, already cut and cleaned.
"""

from __future__ import annotations

INTRO = """\
Hello. I am a **scripted demo**, not a language model: everything I say was written in advance, \
and no key and no network are used. The tools I call are real, though, and so is your folder.

Here is what I will do: look at this folder, read the beginning of a text file, and then ask you \
before I write anything. Press **Escape** at any time to stop me. You can also type while I work: \
Enter queues a message that reaches me between two steps (that is called steering).

First, the files around us:"""

INTRO_WITHOUT_LISTING = """\
Hello. I am a **scripted demo**, not a language model: everything I say was written in advance, \
and no key and no network are used.

Usually I would start by listing your folder, but neither `ls` nor `bash` is switched on in this \
session, so I cannot look around. Type `help` to see what else there is, or `connect` to set up a \
real model."""

LISTED = """\
That was a real call of the `{tool}` tool: it listed {count} of this folder{example}."""

LISTING_FAILED = """\
The listing failed, and the tool said why: {error} A real model would now try something else; I am \
scripted and simply go on."""

LISTED_EMPTY = """\
That was a real call of the `{tool}` tool. It listed nothing, so there is nothing to read."""

READ_NEXT = "Next I read the beginning of `{name}`:"

NOTHING_TO_READ = "I see no text file that I would read without asking, so I skip that step."

READ_DONE = """\
The tool returned {lines} of `{name}`{heading}. A language model would now know what it \
says there; I only counted lines."""

READ_WITHOUT_LINES = "Of `{name}` the tool said: “{said}”."

READ_FAILED = "Reading `{name}` did not work: {error}"

OFFER_WRITE = """\
Shall I write a small scratch file, `{name}`, into this folder? Nothing else is touched. \
Answer **yes** or **no**.

(Ctrl+O unfolds the tool output above. `/tree` shows this conversation as a tree, every tool call \
included.)"""

OFFER_WRITE_UNAVAILABLE = """\
The next step would be to write a scratch file, but the `write` tool is not switched on in this \
session. So the tour ends here. Type `help` for what else there is."""

WRITE_NEXT = "You agreed, so I write `{name}`:"

WRITE_DONE = """\
The file is there. Now an edit: I would like to change one word in it, *grey* to *green*. Watch \
for the difference that the tool shows. May I? **yes** or **no**."""

WRITE_DONE_NO_EDIT = """\
The file is there. The `edit` tool is not switched on in this session, so I leave it as it is."""

WRITE_FAILED = """\
Writing did not work: {error} Nothing was changed. Say **yes** to try again, or type `help`."""

EDIT_NEXT = "One word, then:"

EDIT_DONE_RUN = "Changed. To prove it, I let the shell print the file:"

EDIT_DONE = "Changed; the difference stands above."

EDIT_FAILED = """\
The edit did not work: {error} The file is as it was. Say **yes** to try again, or type `help`."""

RUN_DONE = "So much for reading, writing, editing and running."

RUN_FAILED = "The command did not work: {error}"

FAREWELL = """\
That was the tour. Three things to try now:

- `long` makes me stream a long text. Press **Escape** in the middle, or type something and press \
Enter or Alt+Enter while it runs.
- `/tree`, then choose one of your earlier messages: you go back there, can answer differently, \
and both branches stay. Leaving a branch can be summarised; I write that summary too.
- `/compact --keep 500` replaces the older part of this conversation by a summary, which I compose \
from its own sentences. Without `--keep`, about 20,000 tokens stay as they are, so a short \
conversation has nothing to compact.

To delete the scratch file, type `!rm {name}`. To work with a real model, type `connect`."""

FAREWELL_NO_FILE = """\
That was the tour. Try `long` and press Escape in the middle, `/tree` to go back to an earlier \
message, `/compact --keep 500` to summarise. To work with a real model, type `connect`."""

DECLINED = """\
Then I write nothing, and your folder stays as it is. If you change your mind, say **yes**. \
Otherwise: `long` streams a long text to try Escape and steering on, `connect` tells how to use a \
real model, `help` lists the rest."""

NOTHING_PENDING = """\
Understood, but I have no open question: the tour is over. I am scripted, so there is nothing more \
for me to decide. Type `long`, `connect` or `help`, or try `/tree` and `/compact --keep 500`."""

UNKNOWN = """\
I am the scripted demo and cannot understand that: nobody reads your words here, I only look for a \
few of them. These I know: **{next}**, `help`, `connect`, `long`. To get a real answer, connect a \
model: type `connect`."""

HELP = """\
I am a scripted demo. I understand these words:

| Type | and I |
|---|---|
| `go` | start the tour, or go on with it |
| `yes`, `no` | take the answer to my last question |
| `long` | stream a long text, to try Escape and steering on |
| `connect` or `models` | tell how to use a real model |
| `help` | say this |

The rest belongs to the program, not to me: `/tree` goes back to any point, `/compact --keep 500` \
summarises, `/model` changes the model, `!command` runs a command of yours, Ctrl+O unfolds tool \
output."""

CONNECT = """\
I am scripted; a real model needs one of these:

**A key in the environment.** Set one before the program starts, for example:

```sh
export ANTHROPIC_API_KEY=…     # or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY,
                               # GROQ_API_KEY, DEEPSEEK_API_KEY, MISTRAL_API_KEY, XAI_API_KEY
pi-tui
```

**A model on your own machine.** Start Ollama, LM Studio or the server of llama.cpp; it is found \
by itself at the next start, or chosen with `--model ollama/NAME`.

**Any other server.** Write it into `{models_file}`:

```json
{{"providers": {{"mine": {{
  "baseUrl": "http://localhost:8000/v1",
  "api": "openai-completions",
  "apiKey": "$MY_KEY",
  "models": [{{"id": "my-model", "contextWindow": 128000}}]
}}}}}}
```

`"api": "litellm"` instead reaches every provider that litellm knows. Then pick the model with \
`/model` or start with `--model mine/my-model`. `pi-tui --list-models` shows all of them."""

STEERED = """\
Your message “{said}” reached me between two steps, exactly as steering does. I am scripted and \
cannot act on it, so I go on. """

LONG_OPENING = """\
Here is a long text, streamed slowly on purpose. It is scripted, but true. Press Escape to cut it \
off, or type a message and press Enter: it waits above the editor until I am done."""

LONG_PARTS: tuple[tuple[str, str], ...] = (
    (
        "Every answer is an entry",
        "A conversation is kept as a list of entries in one file, and each entry names the one "
        "before it. That makes it a tree rather than a roll of paper. Your messages, the answers, "
        "the calls of tools and what came back, a change of model, even a label you set: all of "
        "them are entries, and none is ever rewritten. Whatever you do later, what was written "
        "stays written.",
    ),
    (
        "The leaf is where you are",
        "The newest entry of the branch you stand on is called the leaf. The next message becomes "
        "its child. When you go back in the tree, only the leaf moves. Nothing is thrown away; the "
        "branch you left is still there and you can return to it. Moving back does not undo "
        "changes to files, so look at your working copy when you jump over an edit.",
    ),
    (
        "What a model sees",
        "With each request the path from the root to the leaf is sent, and nothing else. Other "
        "branches do not exist for the model. That is why a wrong turn can simply be left behind: "
        "go to the message before it, ask differently, and the detour costs nothing in later "
        "requests.",
    ),
    (
        "Why contexts fill up",
        "A model reads a limited number of tokens at once. The footer shows how much of that "
        "window is in use. Long files and noisy commands fill it quickly, and since the whole path "
        "is sent each time, a full window is also an expensive one.",
    ),
    (
        "Compaction",
        "When the window is nearly full, the older part of the path is summarised. The summary "
        "takes its place in what the model sees; the newest part stays word for word. The old "
        "entries remain in the file and on your screen. You can do it yourself with /compact, tell "
        "it what to pay attention to, and take it back, because taking back only moves the leaf.",
    ),
    (
        "Summaries of branches",
        "Leaving a branch loses what was learnt on it, unless you let it be summarised. The "
        "summary is put at the place you go to, so the model knows what was tried and why it was "
        "given up, without reading all of it again.",
    ),
    (
        "Steering and follow-ups",
        "A message sent with Enter while the agent works is delivered after the running tools and "
        "before the next request: it steers. A message sent with Alt+Enter waits until the agent "
        "would stop: it follows up. Both are listed above the editor, and Alt+Up takes them back "
        "into it as long as they have not been delivered.",
    ),
    (
        "Stopping",
        "Escape ends what is going on: the stream, the tools and the processes they started. What "
        "had arrived stays visible and is marked as aborted. Queued messages come back to the "
        "editor. You can then write something else; the cut answer is not sent to the model again.",
    ),
    (
        "Tools",
        "A model cannot touch your machine. It asks, in a structured form, for a tool to be "
        "called, and the program calls it and returns the result as text. Reading, searching, "
        "editing, writing and running commands are such tools. Their results are bounded, so one "
        "huge file cannot fill the window by accident.",
    ),
    (
        "Your own commands",
        "A line that starts with an exclamation mark is run by you, not by the model. The model "
        "sees the command and its output with your next message. With two exclamation marks it "
        "sees neither.",
    ),
    (
        "Instructions of a project",
        "A file called AGENTS.md in the folder, or in one above it, is given to the model at the "
        "start: how to build, how to test, what to leave alone. It is part of the system prompt "
        "and survives every compaction.",
    ),
    (
        "Keys and money",
        "Keys are read from the environment or printed by a command you name; they are not written "
        "into sessions. The footer counts tokens and cost over the whole session, all branches "
        "included. I cost nothing, which is the one advantage of being scripted.",
    ),
)

LONG_CLOSING = "That was all of it. Type `long` again to try something else in the middle."

FILE_TEXT = """\
This file was written by the demo of pi-tui.
The demo is scripted: no language model chose these words.
Colour of the day: grey
You can delete this file.
"""
OLD_LINE = "Colour of the day: grey"
NEW_LINE = "Colour of the day: green"
