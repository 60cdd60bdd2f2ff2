"""Every bound in the system, named, in one place."""

# Store.

BLOB_CHARS_MIN = 32 * 1024
"""Strings of at least this length become blobs; for a shorter one a second row costs more than it saves."""
VIEWS_CACHED_MAX = 512
"""Session views that the journal keeps in memory."""
CONVERSATIONS_MAX = 128
"""Sessions whose lowered conversations stay in memory."""
PAGE_MAX = 1000
"""Items of one page."""
STREAM_PAGE = 50
"""Messages that a stream through a history reads at once."""
LOG_PAGE = 1000
"""Entries of a log that are read at once to fold it."""
LEDGER_PAGE = 2000
"""Rows of the ledger that are read at once."""
TEXT_INDEXED_MAX = 256 * 1024
"""Characters of one part's text in the search index."""
TAIL_POLL_S = 0.25
"""Seconds between two looks of a tail for events of other processes."""
TAIL_WATCHED_POLL_S = 2.0
"""Seconds between two looks of a tail where the engine reports such events: a look for reports that were lost."""
SETTINGS_POLL_S = 1.0
"""Seconds between two looks of a server at files of settings, if it watches them."""
ANSWERS_POLL_S = 0.5
"""Seconds between two looks of a server for answers that other processes recorded."""

# Values from outside.

JSON_DEPTH_MAX = 128
"""Nesting depth of JSON from outside: request bodies, arguments, tool inputs."""
ENTRY_DEPTH_MAX = 160
"""Nesting depth of an event or a file, which wraps JSON from outside in a few more levels."""
BODY_ITEMS_MAX = 50_000
"""Items of all objects and arrays of a request body together: decoding them blocks the event loop."""
TITLE_CHARS_MAX = 1000
"""Characters of a title."""
NESTING_MAX = 16
"""Nesting depth of Child Sessions."""
SUBAGENT_DEPTH = 1
"""The default nesting depth of Child Sessions that agents start."""

# Histories of other programs.

IMPORTED_LINE_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of one line of another program's history."""
BRANCH_MESSAGES_MAX = 20_000
"""Messages that all branches of one history copy from before their beginnings."""
IMPORTED_TITLE_CHARS = 80
"""Characters of a title that is made of the first prompt."""

# Prompts.

PROMPT_PARTS_MAX = 1000
"""Parts of a prompt."""
INBOX_MAX = 200
"""Admitted prompts that may wait in one session."""
STEERS_MAX = 32
"""Steering prompts that join one boundary; the rest join the next."""
RESOLVED_PARALLEL_MAX = 8
"""Parts of one prompt that are resolved at once."""
IMAGE_WIDTH_MAX = 2000
"""Width in pixels of a prompt's image; a wider image is scaled down."""
IMAGE_HEIGHT_MAX = 2000
"""Height in pixels of a prompt's image; a higher image is scaled down."""
IMAGE_BASE64_MAX = 5 * 1024 * 1024
"""Base64 characters of a prompt's image; a longer image is scaled down."""
IMAGE_PIXELS_MAX = 64 * 1000 * 1000
"""Pixels that are decoded to scale an image down: four bytes each, all in memory."""
IMAGE_READ_MAX = 64 * 1024 * 1024
"""Bytes of an image file that is read to be scaled down."""

# Turns.

CHECKPOINT_CHARS = 2048
"""Streaming text becomes durable at the latest after this many characters."""
CHECKPOINT_MS = 250
"""Streaming text becomes durable at the latest after this time, so that a kill loses less than half a second."""
USAGE_MS = 5000
"""The least time between two records of the usage that a provider reports while it answers."""
EMPTY_TURNS_MAX = 2
"""Repetitions of a request whose answer has no content or no known finish."""
PAUSED_TURNS_MAX = 10
"""Requests in a row that continue a paused answer."""
RETRIES_MAX = 5
"""Retries of one turn."""
DOOM_LOOP_CALLS = 3
"""Identical calls in a row that make a doom loop."""
CALLS_PARALLEL_MAX = 8
"""Tools of one turn that run at once."""
TEMPLATE_COMMANDS_MAX = 32
"""Shell commands in the template of one command."""
CALLS_PER_TURN_MAX = 128
"""Calls of one turn; further calls are refused with advice."""
CACHE_KEPT_S = 300
"""Seconds that providers keep a prefix in their cache by default."""
STOP_S = 10.0
"""Seconds that interrupted sessions may take to settle when a store is closed. Longer than ``KILL_GRACE_S``."""
LEFT_ALONE_S = 4.0
"""Seconds that tool calls which did not stop in time have left when a store is closed. Longer than ``KILL_GRACE_S``."""
STOP_POLL_S = 0.25
"""Seconds between two looks of an owner for requests of other processes to stop its sessions."""
STOP_ELSEWHERE_S = 20.0
"""Seconds that another process may take to stop a session. Longer than ``STOP_S``."""
READY_S = 2.0
"""Seconds in which a store must answer for a server to be ready."""
METRICS_S = 5.0
"""Seconds in which a store must answer for its metrics to be shown. Who asks for metrics often waits ten."""
WAKE_POLL_S = 0.1
"""Seconds between two looks of a worker for sessions that it is asked to run."""
WAKE_LOOK_S = 2.0
"""Seconds between two looks of a worker that hears of wakes; in case that it did not hear of one."""
WAKE_ELSEWHERE_S = 2.0
"""Seconds for which a worker leaves a wake to others whose session it cannot run."""
WAKE_RETRY_S = 2.0
"""Seconds before a worker tries again to run a session, after the store failed."""
HOST_KEPT_MS = 24 * 60 * 60 * 1000
"""Milliseconds after its newest heartbeat for which a process is listed."""
HOSTS_TIDIED_BEATS = 300
"""Heartbeats after which a process looks again for old heartbeats of other processes to remove."""
RELEASE_RETRY_S = 2.0
"""Seconds before the next try to record a session as idle, or to hear the user's answer, after the store failed."""

# Tool outputs.

OUTPUT_LINES_MAX = 2000
"""Lines of a tool's output that the model is shown."""
OUTPUT_BYTES_MAX = 50 * 1024
"""Bytes of a tool's output that the model is shown."""
TURN_OUTPUT_BYTES_MAX = 4 * OUTPUT_BYTES_MAX
"""Bytes of all results of one turn together; see ``bounding.TurnShare``."""
TURN_RESULT_BYTES_MIN = 2 * 1024
"""Bytes that each result of a turn may take in any case."""
OUTPUT_FILE_KEPT_S = 7 * 24 * 3600
"""Seconds that a file with a whole output stays; the store keeps the output as long as the session."""
OUTPUT_SWEEP_S = 3600
"""The least time between two removals of old output files."""
RESULT_MEDIA_MAX = 20
"""Files of one result that the model is shown."""
RESULT_MEDIA_CHARS_MAX = 28 * 1024 * 1024
"""Base64 characters of the files of one result: one file of MEDIA_BYTES_MAX."""
TURN_MEDIA_MAX = 40
"""Files of all results of one turn that the model is shown."""
TURN_MEDIA_CHARS_MAX = 30 * 1024 * 1024
"""Base64 characters of the files of all results of one turn: less than providers accept in one request."""
RECALL_PAGE_CHARS = 20_000
"""Characters of one page of a recall."""
RECALL_PAGE_BYTES = 48 * 1024
"""Bytes of one page of a recall: fewer than OUTPUT_BYTES_MAX, so that no page is bounded."""
RECALL_HITS_MAX = 20
"""Hits of a search in the history."""
RECALL_SNIPPET_CHARS = 240
"""Characters of the snippet of a hit."""

# Tools.

OUTPUT_KEPT_MAX = 32 * 1024 * 1024
"""Bytes of a command's output that are stored. Recording them blocks other sessions for about a second."""
LINE_CHARS_MAX = 2000
"""Characters of one line that the read and grep tools show."""
MATCHES_MAX = 100
"""Files or lines that a search shows."""
MEDIA_BYTES_MAX = 20 * 1024 * 1024
"""Bytes of an image or PDF that the read tool attaches."""
EDITED_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of a file that the edit and write tools read into memory."""
DIFF_LINES_MAX = 5000
"""Lines of a diff that clients are shown with a call."""
DIFF_BYTES_MAX = 256 * 1024
"""Bytes of a diff that clients are shown with a call."""
COMMAND_TIMEOUT_S = 120.0
"""The default timeout of a command."""
COMMAND_BYTES_MAX = 128 * 1024 - 1
"""The longest command. Linux starts no program with a longer argument."""
COMMAND_TIMEOUT_MAX_S = 3600.0
"""The longest timeout that a call may set."""
SEARCH_TIMEOUT_S = 60.0
"""The timeout of a search."""
GIT_S = 10.0
"""The timeout of a git command."""
GIT_WALK_S = 30.0
"""The timeout of a git command that walks the history: the root of a million commits takes some ten seconds."""
OUTSIDE_TOOL_S = 600.0
"""The default timeout of a tool of a plugin or of a file. Waiting for the user does not count."""
KILL_GRACE_S = 3.0
"""Seconds between the signals SIGTERM and SIGKILL to a process group."""
JOBS_RUNNING_MAX = 16
"""Background jobs of one session that run at once."""
JOBS_KEPT_MAX = 32
"""Completed background jobs of one session whose output can still be read."""
JOB_OUTPUT_BYTES_MAX = 1024 * 1024
"""Bytes of the newest output of a background job that are kept in memory; up to twice as many for a moment."""
JOB_FILE_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of a background job's output that are written to a file."""
JOB_WAIT_MAX_S = 120.0
"""The longest that a call waits for the output of a background job."""
SNAPSHOT_END_S = 5.0
"""Seconds that the snapshot after a turn that was stopped may take. Less than ``STOP_S``."""
INTERRUPT_S = 0.2
"""Seconds that an interrupt waits for a tool to end. Then the call is settled, and the tool is left running."""
REMIND_S = 0.2
"""Seconds between two repeated cancellations of a tool that was left running."""
DRAIN_S = 0.25
"""Seconds to wait for output after a command ended, if a process that it started holds the pipe."""
PROGRESS_INTERVAL_S = 0.1
"""The least time between two progress reports of a running tool."""
PROGRESS_MS = 1000
"""The least time between two records of the progress of a running tool."""
PROGRESS_CHARS_MAX = 30_000
"""Characters of the end of a command's output that its progress shows."""

# System Context.

COMPONENT_LOAD_S = 5.0
"""The timeout of loading a Context Component; after it the component is unavailable."""
COMPONENT_CHARS_MAX = 100_000
"""Characters of the text of one component."""
INSTRUCTION_BYTES_MAX = 256 * 1024
"""Bytes of an instruction file."""
SKILL_BYTES_MAX = 256 * 1024
"""Bytes of a SKILL.md file."""
SKILL_DESCRIPTION_CHARS_MAX = 1024
"""Characters of the description of a skill."""
SKILLS_LISTED_CHARS_MAX = 60_000
"""Characters of the list of skills: fewer than COMPONENT_CHARS_MAX, so that no entry is cut."""
SKILL_FOLDERS_MAX = 2000
"""Folders that are searched for skills in one directory."""
SKILL_FILES_SHOWN = 10
"""Further files of a skill that a model is told of."""
SKILL_INDEX_MAX = 100
"""Skills of one index that are downloaded."""
SKILL_INDEX_FILES_MAX = 500
"""Files of one index that are downloaded."""
SKILL_INDEX_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of all files of one index."""
SKILL_DOWNLOAD_S = 60.0
"""The timeout of downloading one index."""
SKILL_FRESH_S = 3600.0
"""Seconds that downloaded skills are used before the index is fetched again."""
TREE_FILES_MAX = 200
"""Files that the project's file tree names."""
NESTED_MAX = 200
"""Discovered instruction files that a session follows."""
FETCH_S = 4.0
"""The timeout of fetching instructions from a URL: less than COMPONENT_LOAD_S, so that the failure is cached."""
FETCH_FRESH_S = 300.0
"""Seconds that fetched instructions are cached."""
FETCH_FAILED_S = 60.0
"""Seconds that a failed fetch is cached, so that not every turn waits for it."""

# Tools.

FORMAT_DIFF_LINES_MAX = 60
"""Lines of a formatter's changes that the model is shown."""
FORMAT_S = 10.0
"""The timeout of a formatter for one file."""
DIAGNOSTICS_MAX = 20
"""Errors of a language server that the model is shown after an edit."""
DIAGNOSTICS_S = 5.0
"""Seconds that an edit waits for the diagnostics of a language server."""
DIAGNOSTICS_START_S = 2.0
"""Seconds after the start of a language server in which edits wait for its first answer. Later edits do not wait."""
LISTED_FILES_MAX = 100
"""Files that the list tool shows."""
FETCHED_BYTES_MAX = 5 * 1024 * 1024
"""Bytes of the largest answer that webfetch accepts."""
FETCH_TIMEOUT_S = 30.0
"""The default timeout of webfetch."""
FETCH_TIMEOUT_MAX_S = 120.0
"""The longest timeout that a webfetch call may set."""
FETCH_REDIRECTS_MAX = 10
"""Redirections that one webfetch follows."""
CUSTOM_TOOL_BYTES_MAX = 1024 * 1024
"""Bytes of the largest Python file that custom tools are loaded from."""

# MCP servers.

MCP_START_S = 5.0
"""The default timeout for a server to start and to list its tools."""
MCP_CALL_S = 60.0
"""The default timeout of a call for a result or a progress report."""
MCP_CALL_MAX_S = 600.0
"""The longest duration of a call, however often the server reports progress. A longer timeout in the settings wins."""
MCP_MESSAGE_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of one message of a server. A longer one ends the connection."""
MCP_MESSAGES_BURST = 2000
"""Messages that a server may send at once. More end the connection."""
MCP_MESSAGES_PER_S = 50
"""Messages that a server may send in each second on average."""
MCP_ERRORS_BYTES = 4096
"""Bytes of the end of a server's error output that are kept, to be shown if the server fails."""
MCP_BACKOFF_S = 1.0
"""Seconds before the next connection to a server that failed once; doubled after each further failure."""
MCP_BACKOFF_MAX_S = 60.0
"""The longest time in seconds before the next connection to a failed server."""
MCP_PAGES_MAX = 50
"""Pages of a list of a server that are read."""
MCP_TOOLS_MAX = 512
"""Tools of one server; further ones are left out. The same holds for prompts and for resources."""
MCP_NAME_CHARS_MAX = 256
"""Characters of the name of a tool, a prompt or a resource of a server; one with more is left out."""
MCP_DESCRIPTION_CHARS_MAX = 8192
"""Characters of a description of a server that models and users are shown."""
MCP_SCHEMA_BYTES_MAX = 64 * 1024
"""Bytes of the schema of a tool of a server. A larger one is left out: the tool then takes any input."""
MCP_SCHEMA_DEPTH_MAX = 64
"""Nesting depth of such a schema."""
MCP_TOOLS_BYTES_MAX = 512 * 1024
"""Bytes of the descriptions and schemas of one server; tools beyond that are left out."""
MCP_INSTRUCTIONS_CHARS_MAX = 16 * 1024
"""Characters of the instructions of one server."""
MCP_RELEARN_S = 1.0
"""Seconds between two requests for the lists of a server, however often the server reports a change of them."""
MCP_CHANGE_S = 2.0
"""Seconds that a turn waits for the new lists of a server that has reported a change of them."""
MCP_RESOURCE_CHARS_MAX = 256 * 1024
"""Characters of a text of a server that a prompt is given."""

# Snapshots.

SNAPSHOT_DELAY_S = 0.05
"""Seconds after which a turn takes its snapshot early, while the model thinks."""
SNAPSHOT_S = 60.0
"""The timeout of a capture; the first one of a large project stores all its files."""
SNAPSHOT_LOCK_S = 10.0
"""Seconds that a capture waits for another process that captures or removes snapshots."""
SNAPSHOT_AGAIN_S = 60.0
"""Seconds without another capture after one has failed."""
SNAPSHOT_FILE_BYTES_MAX = 2 * 1024 * 1024
"""Bytes of a file in a snapshot, unless the project's own repository tracks it."""
SNAPSHOT_NEW_FILES_MAX = 20_000
"""Files that one capture adds, and files of a directory without a repository."""
SNAPSHOT_PERMISSIONS_MAX = 20_000
"""Files of a project whose unusual permissions are kept beside its snapshots."""
SNAPSHOT_QUOTA_BYTES = 2 * 1024 * 1024 * 1024
"""Bytes of all snapshots of a project."""
SNAPSHOT_RETENTION_DAYS = 7
"""Days that the snapshots of a session stay after its last capture."""
SNAPSHOT_DIFFED_BYTES_MAX = 4 * 1024 * 1024
"""Bytes of a file whose lines are compared; a larger one counts as binary."""
SNAPSHOT_COLLECT_S = 600.0
"""The timeout of removing old snapshots."""
SNAPSHOT_COLLECT_EVERY_S = 24 * 3600.0
"""Seconds between two automatic removals of old snapshots of a project."""
SNAPSHOT_COLLECT_IDLE_S = 60.0
"""Seconds without a running session after which a process removes old snapshots."""
SNAPSHOT_GRACE_S = 3600.0
"""Seconds that an object stays that no snapshot needs: an undo may just have stored it."""
SNAPSHOT_PRESSED_GRACE_S = 60.0
"""Seconds that such an object stays while the quota leaves no room for a capture."""
BLAME_TURNS_MAX = 2000
"""Turns that changed a file and that blame compares; the newest ones."""
BLAME_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of all versions of a file that blame compares."""
HOOK_S = 10.0
"""Time limit of one call of a plugin's hook."""
PLUGIN_LOAD_S = 30.0
"""Time limit of loading a plugin."""
