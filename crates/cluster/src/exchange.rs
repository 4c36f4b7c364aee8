//! Everything to its place, once: the step between two stages of a check.

use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::{Operator, Probe};
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::worker::Worker;

/// What may be sent to another worker.
pub(crate) trait Sendable: Clone + Serialize + for<'a> Deserialize<'a> + Send + 'static {}
impl<T: Clone + Serialize + for<'a> Deserialize<'a> + Send + 'static> Sendable for T {}

/// Sends items to workers by number; all that came here, by their order. Ends when everybody has everything.
pub(crate) fn exchange<T: Sendable>(
    worker: &mut Worker,
    items: impl IntoIterator<Item = (usize, u64, T)>,
) -> Vec<(u64, T)> {
    let came: Rc<RefCell<Vec<(u64, T)>>> = Rc::default();
    let mut input = InputHandle::<u64, CapacityContainerBuilder<Vec<(u64, u64, T)>>>::new_with_builder();
    let probe = ProbeHandle::new();
    let into = came.clone();
    worker.dataflow::<u64, _, _>(|scope| {
        input
            .to_stream(scope)
            .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                Exchange::new(|item: &(u64, u64, T)| item.0),
                "Gather",
                |_, _| {
                    move |input, _| {
                        input.for_each_time(|_, containers| {
                            let items = containers.flat_map(|container| container.drain(..));
                            into.borrow_mut().extend(items.map(|(_, order, item)| (order, item)));
                        });
                    }
                },
            )
            .probe_with(&probe);
    });
    for (to, order, item) in items {
        input.send((to as u64, order, item));
        input.flush();
        worker.step();
    }
    input.close();
    worker.step_or_park_while(None, || !probe.done());
    let mut came = std::mem::take(&mut *came.borrow_mut());
    came.sort_by_key(|(order, _)| *order);
    came
}

/// What every worker says, by its number, told to all.
pub(crate) fn everybody<T: Sendable>(worker: &mut Worker, item: T) -> Vec<T> {
    let own = worker.index() as u64;
    let items: Vec<_> = (0..worker.peers()).map(|to| (to, own, item.clone())).collect();
    exchange(worker, items).into_iter().map(|(_, item)| item).collect()
}

/// The way into a stream.
pub(crate) struct Sender<T: Sendable> {
    input: InputHandle<u64, CapacityContainerBuilder<Vec<(u64, T)>>>,
    probe: ProbeHandle<u64>,
    sent: u64,
}

impl<T: Sendable> Sender<T> {
    /// Sends items to workers by number.
    pub(crate) fn send(&mut self, worker: &mut Worker, items: impl IntoIterator<Item = (usize, T)>) {
        for (to, item) in items {
            self.input.send((to as u64, item));
        }
        self.sent += 1;
        self.input.advance_to(self.sent);
        self.input.flush();
        worker.step();
    }

    /// Waits until all but the last few of what anybody sent have come.
    pub(crate) fn wait(&self, worker: &mut Worker, few: u64) {
        let time = self.sent.saturating_sub(few);
        worker.step_or_park_while(None, || self.probe.less_than(&time));
    }
}

/// Sends items to workers while they are made; they are taken in as they come. Ends when everybody has everything.
pub(crate) fn stream<T: Sendable>(
    worker: &mut Worker,
    make: impl FnOnce(&mut Worker, &mut Sender<T>),
    mut take: impl FnMut(T) + 'static,
) {
    let mut input = InputHandle::<u64, CapacityContainerBuilder<Vec<(u64, T)>>>::new_with_builder();
    let probe = ProbeHandle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        input
            .to_stream(scope)
            .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                Exchange::new(|item: &(u64, T)| item.0),
                "Take",
                |_, _| {
                    move |input, _| {
                        input.for_each_time(|_, containers| {
                            containers
                                .flat_map(|container| container.drain(..))
                                .for_each(|(_, item)| take(item));
                        });
                    }
                },
            )
            .probe_with(&probe);
    });
    let mut sender = Sender { input, probe, sent: 0 };
    make(worker, &mut sender);
    sender.input.close();
    let probe = sender.probe;
    worker.step_or_park_while(None, || !probe.done());
}
