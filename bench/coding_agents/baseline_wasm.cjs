// Node compiles WebAssembly once, not again for speed: Qwen Code and Gemini CLI parse commands with a grammar that takes
// ten seconds of processor time to optimise, and no run ends before that is done.
require("node:v8").setFlagsFromString("--liftoff-only");
