fn main(){ println!("{}", golden::all()); for (n,t) in machine_pc::thread_templates() { println!("{n} {:x?}", t.bytes); } }
