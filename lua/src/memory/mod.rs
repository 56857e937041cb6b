//! A store in this process: the same Lua files in an embedded Lua 5.1, the version that Redis embeds.
//!
//! For trying out, for a single node, and for tests under a clock of their own. Nothing is shared between processes and
//! nothing outlives this one.

mod keyspace;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use keyspace::Keyspace;
use mlua::{Function, Lua, LuaString, MultiValue, Table, Value, Variadic};

use crate::{Call, Script};

/// The time in ms since 1970.
pub(crate) type ClockMs = Box<dyn Fn() -> u64 + Send>;

/// A store in this process.
#[derive(Clone)]
pub struct Memory(Arc<Mutex<Interpreter>>);

struct Interpreter {
    lua: Lua,
    keyspace: Arc<Mutex<Keyspace>>,
    /// Each script compiled, by its name.
    compiled: HashMap<&'static str, Function>,
}

/// Why a script gave no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MemoryError(String);

impl From<mlua::Error> for MemoryError {
    fn from(error: mlua::Error) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Memory")
    }
}

impl Memory {
    /// An empty store that goes by `clock`, which tells the ms since 1970.
    pub fn new(clock: impl Fn() -> u64 + Send + 'static) -> Result<Self, MemoryError> {
        let keyspace = Arc::new(Mutex::new(Keyspace::new(Box::new(clock))));
        let lua = Lua::new();
        lua.globals().set("redis", redis_table(&lua, &keyspace)?)?;
        Ok(Self(Arc::new(Mutex::new(Interpreter { lua, keyspace, compiled: HashMap::new() }))))
    }

    /// Runs a call: no other one sees it half done.
    pub fn run(&self, call: &Call) -> Result<Vec<i64>, MemoryError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).run(call.script, &call.keys, &call.args)
    }

    /// What a key holds and how many ms it lives: to see, as a test does, what the scripts left behind.
    #[must_use]
    pub fn entries(&self) -> Vec<(String, String, u64)> {
        let interpreter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keyspace = interpreter.keyspace.lock().unwrap_or_else(PoisonError::into_inner);
        keyspace.entries()
    }

    /// Commands that scripts called so far.
    #[must_use]
    pub fn commands(&self) -> u64 {
        let interpreter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keyspace = interpreter.keyspace.lock().unwrap_or_else(PoisonError::into_inner);
        keyspace.commands()
    }
}

impl Interpreter {
    fn run(&mut self, script: &Script, keys: &[String], args: &[String]) -> Result<Vec<i64>, MemoryError> {
        let function = match self.compiled.get(script.name) {
            Some(function) => function.clone(),
            None => {
                let function = self.lua.load(script.source).set_name(script.name).into_function()?;
                self.compiled.insert(script.name, function.clone());
                function
            }
        };
        let globals = self.lua.globals();
        globals.set("KEYS", keys)?;
        globals.set("ARGV", args)?;
        match function.call::<Value>(())? {
            Value::Table(reply) => integers(&reply),
            other => Err(MemoryError(format!("the script returned {}", other.type_name()))),
        }
    }
}

/// Redis turns a Lua number into an integer reply by dropping the fraction; a table with `err` is an error reply.
fn integers(reply: &Table) -> Result<Vec<i64>, MemoryError> {
    if let Some(error) = reply.get::<Option<String>>("err")? {
        return Err(MemoryError(error));
    }
    reply
        .sequence_values::<f64>()
        .map(|number| match number {
            Ok(number) if number.fract() == 0.0 => Ok(number as i64),
            Ok(number) => Err(MemoryError(format!("{number} is not an integer"))),
            Err(error) => Err(error.into()),
        })
        .collect()
}

/// The `redis` table that scripts see: `call` and `error_reply`.
fn redis_table(lua: &Lua, keyspace: &Arc<Mutex<Keyspace>>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let keyspace = Arc::clone(keyspace);
    let call = lua.create_function(move |lua, arguments: Variadic<LuaString>| {
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let mut keyspace = keyspace.lock().unwrap_or_else(PoisonError::into_inner);
        keyspace.call(&arguments).map_err(mlua::Error::runtime)?.into_lua(lua)
    })?;
    // No command that the scripts call fails here, so a protected call is a call.
    table.set("pcall", &call)?;
    table.set("call", call)?;
    let error_reply = lua.create_function(|lua, message: LuaString| {
        let reply = lua.create_table()?;
        reply.set("err", message)?;
        Ok(MultiValue::from_iter([Value::Table(reply)]))
    })?;
    table.set("error_reply", error_reply)?;
    Ok(table)
}

impl keyspace::Reply {
    /// As Redis converts replies for Lua: a missing value is `false`, a status a table with `ok`.
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        match self {
            Self::Missing => Ok(Value::Boolean(false)),
            Self::Integer(integer) => Ok(Value::Number(integer as f64)),
            Self::Bulk(bytes) => Ok(Value::String(lua.create_string(bytes)?)),
            Self::Ok => {
                let status = lua.create_table()?;
                status.set("ok", "OK")?;
                Ok(Value::Table(status))
            }
            Self::List(list) => {
                let table = lua.create_table()?;
                for (index, item) in list.into_iter().enumerate() {
                    table.set(index + 1, lua.create_string(item)?)?;
                }
                Ok(Value::Table(table))
            }
        }
    }
}
