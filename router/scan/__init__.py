"""How text is read: a bounded view for routing, the whole of it in windows for guards.

Everything here is pure: texts, clocks and random numbers come from outside, calls go outside. `view` is the routing
view; `machine` drives the scans of one request and says in its docstring how it is driven.

Where each statement of "Long inputs" is kept (tests are in `tests/unit/scan`, `tests/unit/config/test_config_sizes.py`
and `tests/property/test_scan_machine_any.py`):

====================================================================  ==================================  ==============
what the document says                                                module                              test file
====================================================================  ==================================  ==============
a longer turn keeps head and tail around a marker                     `view.routing_view`                 scan_view
the head takes a quarter, the tail the rest                           `config.sizes`, `view`              scan_view
a turn within the view is sent byte for byte                          `view.routing_view`                 scan_view
windows overlap, text across a cut is read whole                      `windows.tile`                      scan_windows
tail, head, then by halves; another start each request                `windows.visiting_order`            scan_windows
what is read by any moment is spread over the input                   `windows.visiting_order`            scan_windows
a call a window, at most `max_parallel` a deployment                  `machine._send`                     scan_machine
rules of one input share each window's call                           `rules.WatchedQuestion`             scan_machine
answers count as soon as a window is read                             `machine.answered`                  scan_machine
any window flags the input                                            `evidence.Evidence`                 scan_machine
spans keep their places                                               `units.Part.origins`, `text`        scan_machine
a match is never undone                                               `asked.AskedQuestion.matched`       machine_any
a match that alone refuses ends every scan at once                    `machine._check`                    scan_machine
at most 256 windows; larger ones between head and tail                `windows.cover`                     scan_windows
beyond 256 of the largest, windows are left out and unread            `windows._spread`                   scan_windows
head and tail always have the configured size                         `windows.cover`                     scan_windows
a larger window just short of a threshold is read again               `reading._look_again`               scan_machine
0.91 at 0.995, 0.27 at 0.88, 0.05 at 0.5; never after a match         `evidence.shortfall`                scan_machine
within half the margin at once, further ones last and nearest first   `reading.InputScan.offer`           scan_machine
a scan that is behind reads its runs before such second looks         `reading.InputScan.offer`           scan_pace
a part that was read and answered is not read again                   `reading._second_look`              scan_machine
a tail just short of a threshold has its last half read at once       `reading._look_again`               scan_machine
an input that is read in time is read at the configured size          `machine._keep_up`                  scan_pace
one that is behind is read in the shortest runs that are in time      `machine._shortest`, `runs`         scan_pace
where the measured pace does not promise that, windows are kept       `pace.DeploymentPace.cost`          scan_pace
a scan that waited learns no pace, and judges anew                    `machine.overloaded`, `freed`       scan_pace
defaults of both providers; four bytes a token                        `config.sizes`                      config_sizes
never more than the validated length less 1,024 bytes                 `config.sizes.room_for_text`        config_sizes
`on_unscanned`, `min_coverage`                                        `rules.outcome`                     scan_machine
nothing read at all: unknown, whatever `on_unscanned` says            `rules.outcome`                     scan_machine
`full`, `partial n/m`, `none`                                         `rules.Coverage`                    scan_machine
====================================================================  ==================================  ==============

Beyond the document: a normalised twin (`normalise`, `twin`) is read right after its window, where it differs.
Ranges of written settings, warnings, metrics and traces belong to those who have the configuration and the response.
"""
