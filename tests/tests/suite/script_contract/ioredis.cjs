// Calls token_bucket.lua as a user of ioredis does. Arguments: port, path of the script, calls as JSON.
//
// A call is [key, capacity, refill per second, now in ms, cost]; the output is one reply each: three values, or "error".

const fs = require("node:fs");
const Redis = require("ioredis");

const [port, path, calls] = process.argv.slice(2);
const client = new Redis({ port: Number(port) });
client.defineCommand("tokenBucket", { numberOfKeys: 1, lua: fs.readFileSync(path, "utf8") });

async function main() {
  const replies = [];
  for (const call of JSON.parse(calls)) {
    try {
      const [allowed, remaining, wait] = await client.tokenBucket(...call);
      replies.push([allowed, remaining, wait]);
    } catch (error) {
      if (error.name !== "ReplyError") throw error;
      replies.push("error");
    }
  }
  console.log(JSON.stringify(replies));
}

main().finally(() => client.disconnect());
