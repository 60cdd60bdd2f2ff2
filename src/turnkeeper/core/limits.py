"""Every bound in the system, named, in one place."""

BLOB_CHARS_MIN = 32 * 1024
"""Strings from this length on become blobs; below it a second row costs more than it saves."""

VIEWS_CACHED_MAX = 512
"""How many session views the journal keeps in memory."""

NESTING_MAX = 16
"""How deep Child Sessions may nest."""

JSON_DEPTH_MAX = 128
"""How deep JSON from outside may be nested: bodies of requests, arguments, inputs of tools ..."""

ENTRY_DEPTH_MAX = 160
"""... and an event or a file, which wraps such a value in a few levels of its own."""

BODY_ITEMS_MAX = 50_000
"""How many items all objects and arrays of a request's body may hold: each costs time in which nothing else is done."""

PROMPT_PARTS_MAX = 1000
"""How many parts a prompt may have."""

PAGE_MAX = 1000
"""The most items one page gives."""

STREAM_PAGE = 50
"""How many messages a stream through a history reads at once."""

LOG_PAGE = 1000
"""How many entries of a log are read at once to fold it."""

LEDGER_PAGE = 2000
"""How many rows of the ledger are read at once."""

TEXT_INDEXED_MAX = 256 * 1024
"""How much of one part's text the search index takes."""

TAIL_POLL_S = 0.25
"""How often a tail looks for what other processes wrote."""

CHECKPOINT_CHARS = 2048
"""Streaming text becomes durable at the latest after so many characters ..."""

CHECKPOINT_MS = 250
"""... or after so long; with the time a commit takes, a kill loses less than half a second of it."""

USAGE_MS = 5000
"""So often, at the most, what a provider counts while an answer comes in becomes durable."""

INBOX_MAX = 200
"""How many admitted prompts may wait in one session."""

STEERS_MAX = 32
"""How many steering prompts join one boundary; the rest join the next."""

EMPTY_TURNS_MAX = 2
"""How often an answer without content or known finish is asked for again."""

PAUSED_TURNS_MAX = 10
"""How often in a row a provider that paused its answer is asked to go on."""

RETRIES_MAX = 5
"""How often one turn is tried again."""

CALLS_PARALLEL_MAX = 8
"""How many tools of one turn run at once."""

CALLS_PER_TURN_MAX = 128
"""How many calls one turn may make; more are refused with advice."""

OUTPUT_LINES_MAX = 2000
"""How many lines of a tool's output the model is shown."""

OUTPUT_BYTES_MAX = 50 * 1024
"""How many bytes of a tool's output the model is shown."""

TURN_OUTPUT_BYTES_MAX = 4 * OUTPUT_BYTES_MAX
"""How many bytes all results of one turn may take; see ``bounding.TurnShare``."""

TURN_RESULT_BYTES_MIN = 2 * 1024
"""What each of them may take at least, however many there are."""

OUTPUT_FILE_KEPT_S = 7 * 24 * 3600
"""How long a file with a whole output stays; the store has its content for as long as the session."""

OUTPUT_SWEEP_S = 3600
"""How often older ones are looked for, at the most."""

RESULT_MEDIA_MAX = 20
"""How many files of one result the model is shown ..."""

RESULT_MEDIA_CHARS_MAX = 28 * 1024 * 1024
"""... and how long they may be as base64 together: one file of the largest size that read attaches."""

TURN_MEDIA_MAX = 40
"""The same for all results of a turn ..."""

TURN_MEDIA_CHARS_MAX = 30 * 1024 * 1024
"""... together less than providers take in one request."""

RECALL_PAGE_CHARS = 20_000
"""How many characters of a text one page of a recall gives ..."""

RECALL_PAGE_BYTES = 48 * 1024
"""... and how many bytes, so that no page is itself bounded."""

RECALL_HITS_MAX = 20
"""How many places a search of the history gives."""

RECALL_SNIPPET_CHARS = 240
"""How much of each is shown."""

OUTPUT_KEPT_MAX = 32 * 1024 * 1024
"""How many bytes of a command's output are kept at all; of more, the beginning and the end. Recording this much keeps
other sessions of the process waiting for about a second."""

LINE_CHARS_MAX = 2000
"""How much of one line the read and grep tools show."""

MATCHES_MAX = 100
"""How many files or lines a search shows."""

MEDIA_BYTES_MAX = 20 * 1024 * 1024
"""The largest image or PDF the read tool attaches."""

EDITED_BYTES_MAX = 32 * 1024 * 1024
"""The largest file the edit and write tools take into memory."""

DIFF_LINES_MAX = 5000
"""How many lines of a diff clients are shown with a call."""

DIFF_BYTES_MAX = 256 * 1024
"""How many bytes of a diff clients are shown with a call."""

COMMAND_TIMEOUT_S = 120.0
"""How long a command may run unless the call says otherwise."""

COMMAND_TIMEOUT_MAX_S = 3600.0
"""The longest timeout a call may ask for."""

SEARCH_TIMEOUT_S = 60.0
"""How long a search may take."""

GIT_S = 10.0
"""How long git may take to answer a question ..."""

GIT_WALK_S = 30.0
"""... and one for which it walks the history: the root of a million commits takes some ten seconds."""

STOP_S = 10.0
"""How long sessions that are told to stop may take to settle when a store is closed. Longer than ``KILL_GRACE_S``."""

RELEASE_RETRY_S = 2.0
"""How long to wait before a session is released again that the store could not record as idle."""

KILL_GRACE_S = 3.0
"""How long a process group has between the request to end and the end."""

JOBS_RUNNING_MAX = 16
"""How many background jobs of one session run at once."""

JOBS_KEPT_MAX = 32
"""How many background jobs of one session that are done can still be read."""

JOB_OUTPUT_BYTES_MAX = 1024 * 1024
"""How much of the newest output of a background job is kept in memory; up to twice as much for a moment."""

JOB_FILE_BYTES_MAX = 32 * 1024 * 1024
"""How much of its output is written to a file."""

JOB_WAIT_MAX_S = 120.0
"""The longest that a call waits for the output of a background job."""

INTERRUPT_S = 0.2
"""How long an interrupt waits for a tool to end. Then the call is settled, and the tool is left to end by itself."""

DRAIN_S = 0.25
"""How long output is still awaited when a command is done and something it started holds the pipe."""

PROGRESS_INTERVAL_S = 0.1
"""The least time between two reports of a running tool's progress."""

PROGRESS_CHARS_MAX = 30_000
"""How much of the end of a command's output its progress shows."""

DOOM_LOOP_CALLS = 3
"""How many identical calls in a row are one too many."""

PROGRESS_MS = 1000
"""How often the progress of a running tool is recorded at the most."""

COMPONENT_LOAD_S = 5.0
"""How long a Context Component may take to load before it counts as unavailable."""

COMPONENT_CHARS_MAX = 100_000
"""How long one component's text may be."""

INSTRUCTION_BYTES_MAX = 256 * 1024
"""How large an instruction file may be."""

TREE_FILES_MAX = 200
"""How many files the project's file tree names."""

NESTED_MAX = 200
"""How many instruction files met while reading a session follows."""

FETCH_S = 4.0
"""How long an instruction from an address may take: less than a component, so that its failure is remembered."""

FETCH_FRESH_S = 300.0
"""How long what an address said is taken for what it says."""

FETCH_FAILED_S = 60.0
"""How long an address that failed is left alone: no turn waits for it again and again."""

CACHE_KEPT_S = 300
"""How long providers keep a prefix in their cache unless asked for more."""

RESOLVED_PARALLEL_MAX = 8
"""How many parts of one prompt are resolved at once."""

IMAGE_WIDTH_MAX = 2000
"""How wide an image of a prompt may be; a wider one is made smaller ..."""

IMAGE_HEIGHT_MAX = 2000
"""... as is a higher one ..."""

IMAGE_BASE64_MAX = 5 * 1024 * 1024
"""... and one whose base64 text is longer."""

IMAGE_PIXELS_MAX = 64 * 1000 * 1000
"""How many pixels are decoded to make an image smaller: four bytes each, all in memory."""

IMAGE_READ_MAX = 64 * 1024 * 1024
"""The largest image file that is read to be made smaller."""

TITLE_CHARS_MAX = 1000
"""How long a title may be."""

CONVERSATIONS_MAX = 128
"""How many sessions' lowered conversations stay in memory."""
