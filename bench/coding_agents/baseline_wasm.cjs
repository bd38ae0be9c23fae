// Node compiles WebAssembly once, not again for speed: Qwen Code and Gemini CLI parse commands with a grammar that is
// optimised for two seconds of processor time, which the end of each run of Qwen Code waits for.
require("node:v8").setFlagsFromString("--liftoff-only");
